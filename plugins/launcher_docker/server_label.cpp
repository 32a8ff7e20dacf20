#include "server_label.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <system_error>

#include "jobq/error.h"
#include "jobq/file_descriptor.h"
#include "jobq/hex.h"

namespace jobq::docker {
namespace {

constexpr std::size_t kBytes = 16;

bool isLabel(std::string_view text) {
  return text.size() == 2 * kBytes && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string drawLabel() {
  std::array<char, kBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error("the system gives no random numbers");
  }
  return toHex({bytes.data(), bytes.size()});
}

// Written beside the file and renamed: a crash leaves no part of a name.
void writeLabel(const std::filesystem::path& file, const std::string& label) {
  constexpr mode_t kOwner = 0600;
  const std::filesystem::path fresh = file.string() + ".new";
  FileDescriptor out(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwner));
  const bool isWritten = out.isOpen() &&
                         ::write(out.number(), label.data(), label.size()) == static_cast<ssize_t>(label.size()) &&
                         ::fsync(out.number()) == 0;
  const int error = errno;
  out.close();
  if (isWritten && ::rename(fresh.c_str(), file.c_str()) == 0) return;
  throw Error("the launcher docker cannot write " + file.string() + " (" +
              std::generic_category().message(isWritten ? errno : error) + "): let this user write the data directory");
}

}  // namespace

std::string serverLabelOf(const std::filesystem::path& dataDir) {
  const std::filesystem::path file = dataDir / "launcher.docker.id";
  std::ifstream in(file);
  std::string label;
  if (std::getline(in, label) && isLabel(label)) return label;
  label = drawLabel();
  writeLabel(file, label);
  return label;
}

}  // namespace jobq::docker
