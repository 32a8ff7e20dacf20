#include "gd_messages.h"

#include <gd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace jobq::image {

namespace {

constexpr std::size_t kMostLines = 20;
thread_local GdMessages* listener = nullptr;

// Called from C code of libgd, where exceptions must not pass.
void recordMessage(int, const char* format, va_list arguments) noexcept {
  if (listener == nullptr) return;
  char text[256];
  if (std::vsnprintf(text, sizeof text, format, arguments) < 0) return;
  try {
    listener->add(text);
  } catch (...) {
    return;
  }
}

}  // namespace

GdMessages::GdMessages() { listener = this; }
GdMessages::~GdMessages() { listener = nullptr; }

void GdMessages::install() { gdSetErrorMethod(recordMessage); }

bool GdMessages::mention(const char* words) const {
  return std::any_of(lines_.begin(), lines_.end(),
                     [words](const std::string& line) { return line.find(words) != std::string::npos; });
}

void GdMessages::add(std::string line) {
  if (lines_.size() == kMostLines) return;
  std::replace(line.begin(), line.end(), '\n', ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (!line.empty()) lines_.push_back(std::move(line));
}

}  // namespace jobq::image
