#include "journal.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "journal_line.h"

namespace jobq::fault {
namespace {

JournalLine parse(const std::string& text) {
  std::istringstream in(text);
  std::string what;
  JournalLine line;
  in >> what >> line.number >> line.id >> line.attempt >> line.process >> line.at;
  line.begins = what == "begin";
  if (what == "output") line.end = Run::End::output;
  if (what == "failed") line.end = Run::End::failed;
  if (what == "stopped") line.end = Run::End::stopped;
  if (!in || (!line.begins && line.end == Run::End::none)) {
    throw std::runtime_error("the journal has a line that no witness wrote: " + text);
  }
  return line;
}

}  // namespace

std::vector<JournalLine> JournalReader::read() {
  std::vector<JournalLine> lines;
  std::ifstream in(file_, std::ios::binary);
  if (!in) return lines;  // no worker has started yet
  in.seekg(static_cast<std::streamoff>(done_));
  std::string text(kJournalLine, ' ');
  while (in.read(text.data(), kJournalLine)) {
    lines.push_back(parse(text));
    done_ += kJournalLine;
  }
  if (in.gcount() != 0) throw std::runtime_error("the journal ends in the middle of a line");
  return lines;
}

void JournalReader::truncate() {
  if (done_ == 0) return;
  std::filesystem::resize_file(file_, 0);
  done_ = 0;
}

}  // namespace jobq::fault
