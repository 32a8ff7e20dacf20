// A log for plugins inside jobqctl: warnings and errors go to standard error.
#pragma once

#include <iostream>
#include <string>
#include <string_view>

#include "core/client/table_print.h"
#include "jobq/log.h"

namespace jobq::cli {

class ErrorLog final : public Log {
 public:
  void write(LogLevel level, std::string_view, std::string_view message) noexcept override {
    if (level >= LogLevel::warning) std::cerr << "jobqctl: " << harmless(std::string(message)) << '\n';
  }
};

}  // namespace jobq::cli
