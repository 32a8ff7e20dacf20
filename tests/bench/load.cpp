// bench_load PROTOCOL PORT CONNECTIONS SECONDS COUNT FILE [NUMBERS]
//   PROTOCOL  http       FILE is a whole request; each answer has to be a 200
//             http429    the same request; each answer has to be a 429
//             beanstalk  FILE is a job's body; `put`
//             beanstalk-finished  `put`, then `reserve` and `delete`: a job is queued, taken and finished
//             gearman    FILE is a job's body; a foreground job of function `echo`
//   NUMBERS   the first 00000 in FILE is replaced by 00000, 00001, ... up to this many, and again from the start
//   The loop ends after SECONDS, or after COUNT requests if COUNT is not 0. Prints a line of JSON.
#include <strings.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>

#include "closed_loop.h"
#include "gearman.h"

namespace {

using bench::Answer;
constexpr Answer kNotWhole{0, false};
constexpr Answer kError{-1, false};

bool equals(std::string_view text, std::string_view lowerCase) {
  return text.size() == lowerCase.size() && ::strncasecmp(text.data(), lowerCase.data(), text.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Strict: a measured server must not gain by an answer that a careful client would refuse.
Answer measureHttp(std::string_view text, std::string_view status) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return kNotWhole;
  if (!text.starts_with("HTTP/1.1 ") || !text.substr(9).starts_with(status)) return kError;
  long length = -1;
  bool closes = false;
  for (std::size_t line = text.find("\r\n") + 2; line < end + 2;) {
    const std::size_t stop = text.find("\r\n", line);
    const std::size_t colon = text.find(':', line);
    if (colon >= stop) return kError;
    const std::string_view name = text.substr(line, colon - line);
    const std::string_view value = trimmed(text.substr(colon + 1, stop - colon - 1));
    if (equals(name, "content-length")) {
      if (length >= 0 || value.empty() || value[0] == '-') return kError;
      const auto [rest, fault] = std::from_chars(value.data(), value.data() + value.size(), length);
      if (fault != std::errc() || rest != value.data() + value.size()) return kError;
    } else if (equals(name, "connection")) {
      closes = equals(value, "close");
    } else if (equals(name, "transfer-encoding")) {
      return kError;  // all answers of this API have a length
    }
    line = stop + 2;
  }
  const long size = length < 0 ? -1 : static_cast<long>(end) + 4 + length;
  const long have = static_cast<long>(text.size());
  if (size < 0 || have > size) return kError;  // no request is open for the surplus
  return have < size ? kNotWhole : Answer{size, closes};
}

Answer measureBeanstalk(std::string_view text) {
  const std::size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return kNotWhole;
  const long line = static_cast<long>(end + 2);
  if (text.starts_with("INSERTED ") || text == "DELETED\r\n") return {line, false};
  if (!text.starts_with("RESERVED ")) return kError;
  const std::size_t space = text.find(' ', 9);  // RESERVED id bytes, then the body
  if (space > end) return kError;
  const long size = line + std::atol(text.data() + space + 1) + 2;
  return static_cast<long>(text.size()) < size ? kNotWhole : Answer{size, false};
}

// Each connection takes a job after its `put`, so no connection waits for ever.
std::string finishBeanstalk(std::string_view answer) {
  if (answer.starts_with("INSERTED ")) return "reserve\r\n";
  if (!answer.starts_with("RESERVED ")) return {};
  return "delete " + std::string(answer.substr(9, answer.find(' ', 9) - 9)) + "\r\n";
}

// The answer of a foreground job is two packets: job created, work complete.
Answer measureGearman(std::string_view text) {
  const auto created = gearman::read(text);
  if (!created) return kNotWhole;
  if (created->type != gearman::Type::jobCreated) return kError;
  const auto complete = gearman::read(text.substr(created->size));
  if (!complete) return kNotWhole;
  if (complete->type != gearman::Type::workComplete) return kError;
  return {static_cast<long>(created->size + complete->size), false};
}

std::string readFile(const char* name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 && argc != 8) {
    std::cerr
        << "usage: bench_load http|http429|beanstalk|beanstalk-finished|gearman PORT CONNECTIONS SECONDS COUNT FILE "
           "[NUMBERS]\n";
    return 2;
  }
  const std::string protocol = argv[1];
  const std::string body = readFile(argv[6]);
  bench::Load load{"127.0.0.1",
                   std::atoi(argv[2]),
                   std::atoi(argv[3]),
                   std::atof(argv[4]),
                   std::strtoull(argv[5], nullptr, 10),
                   "",
                   body,
                   0,
                   0,
                   [](std::string_view text) { return measureHttp(text, "200 "); },
                   {}};
  if (argc == 8) {
    load.numbers = std::strtoull(argv[7], nullptr, 10);
    load.numberAt = body.find("00000");
    if (load.numbers == 0 || load.numbers > 100'000 || load.numberAt == std::string::npos) {
      std::cerr << "NUMBERS is up to 100000, and the file needs 00000 in the place of the number\n";
      return 2;
    }
  }
  if (protocol == "http429") {
    load.measure = [](std::string_view text) { return measureHttp(text, "429 "); };
  } else if (protocol.starts_with("beanstalk")) {
    load.request = "put 0 0 60 " + std::to_string(body.size()) + "\r\n" + body + "\r\n";
    load.measure = measureBeanstalk;
    if (protocol == "beanstalk-finished") load.followUp = finishBeanstalk;
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
