// bench_load PROTOCOL PORT CONNECTIONS SECONDS COUNT FILE
//   PROTOCOL  http       FILE is a whole request; each answer has to be a 200
//             beanstalk  FILE is a job's body; `put`
//             gearman    FILE is a job's body; a foreground job of function `echo`
//   The loop ends after SECONDS, or after COUNT requests if that is not 0. Prints one line of JSON.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>

#include "closed_loop.h"
#include "gearman.h"

namespace {

long measureHttp(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  if (!text.starts_with("HTTP/1.1 200 ")) return -1;
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const std::size_t at = text.find(kLength);
  if (at == std::string_view::npos || at > end) return -1;
  const std::size_t size = end + 4 + static_cast<std::size_t>(std::atol(text.data() + at + kLength.size()));
  return text.size() < size ? 0 : static_cast<long>(size);
}

long measureBeanstalk(std::string_view text) {
  const std::size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return 0;
  return text.starts_with("INSERTED ") ? static_cast<long>(end + 2) : -1;
}

// The answer of a foreground job is two packets: it was created, it is complete.
long measureGearman(std::string_view text) {
  const auto created = gearman::read(text);
  if (!created) return 0;
  const auto complete = gearman::read(text.substr(created->size));
  if (!complete) return 0;
  if (complete->type != gearman::Type::workComplete) return -1;
  return static_cast<long>(created->size + complete->size);
}

std::string readFile(const char* name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::cerr << "usage: bench_load http|beanstalk|gearman PORT CONNECTIONS SECONDS COUNT FILE\n";
    return 2;
  }
  const std::string protocol = argv[1];
  const std::string body = readFile(argv[6]);
  bench::Load load{
      "127.0.0.1", std::atoi(argv[2]), std::atoi(argv[3]), std::atof(argv[4]), std::strtoull(argv[5], nullptr, 10), "",
      body,        measureHttp};
  if (protocol == "beanstalk") {
    load.request = "put 0 0 60 " + std::to_string(body.size()) + "\r\n" + body + "\r\n";
    load.measure = measureBeanstalk;
  } else if (protocol == "gearman") {
    load.request = gearman::packet(gearman::Type::submitJob, std::string("echo\0\0", 6) + body);
    load.measure = measureGearman;
  }
  try {
    bench::Result result = bench::run(load);
    std::cout << bench::toJson(result) << "\n";
    if (result.errors == 0) return 0;
    std::cerr << "an answer is an error: " << result.firstError << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 1;
}
