// Where a script runs: a Lua state with a limit to its memory, the libraries that a script may use, and a watch that
// ends it. A state is used for one script after the other; each gets an environment of its own, and nothing that one
// can change is seen by the next.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

#include "execution_limiter.h"
#include "heap.h"
#include "script.h"

namespace jobq::lua {

/// A script failed, or was ended. what() is for whoever wrote it: with file and line, where Lua knows them.
class ScriptError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One thread at a time.
class Sandbox {
 public:
  /// Adds libraries (library.h, addLibrary) to those that every script has.
  using Opener = std::function<void(lua_State*)>;

  /// The largest block with which a script goes on for 200 instructions between two looks at the clock. A thread that
  /// serves callers cannot wait for the worst of them; a handler with data of megabytes would be slowed down.
  static constexpr std::size_t kPlainOfFilters = 16U << 10;
  static constexpr std::size_t kPlainOfHandlers = 512U << 10;

  /// `memory` in bytes, for everything that scripts hold at one time. Throws std::bad_alloc.
  Sandbox(std::size_t memory, std::size_t plain, const Opener& more = {});
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  /// Where print() and the like go while a script runs; may be empty.
  using LineSink = std::function<void(std::string_view line)>;

  /// Runs the script's text anew, in a fresh environment, and then `body` with the function that it returned on top of
  /// the stack; all of it until `judge` ends it. Throws ScriptError.
  void run(const ScriptPtr& script, ExecutionLimiter::Judge judge, LineSink print,
           const std::function<void(lua_State*)>& body);

  /// The bytecode of a text, compiled under the same limits. Throws ScriptError.
  std::string compile(std::string_view text, const std::string& chunk, ExecutionLimiter::Judge judge);

  /// Why the last script was ended from outside; empty when it ended by itself.
  const std::string& endedBy() const { return limiter_->reason(); }

  /// It holds more than a few scripts leave behind, or one was ended in its midst: a new one is better.
  bool isSpent() const { return spent_ || heap_.held() > kKept || heap_.wasRefused(); }

  /// Whether the script that runs has numbers of its own; each begins without.
  bool isSeeded() const { return isSeeded_; }
  void setSeeded() { isSeeded_ = true; }
  lua_Integer nextSeed() { return static_cast<lua_Integer>(seeds_()); }

  static Sandbox& of(lua_State* lua);
  void print(std::string_view line) const {
    if (print_) print_(line);
  }

 private:
  static constexpr std::size_t kKept = 1U << 20;
  static constexpr std::size_t kLittle = 1U << 18;  // a quarter of the least that lua.memory may be

  static void* resize(void* self, void* block, std::size_t before, std::size_t after);
  static int perform(lua_State* lua);
  static int translate(lua_State* lua);
  std::optional<std::string> attempt(lua_CFunction work, void* task, ExecutionLimiter::Judge judge);
  void forget();
  std::string describe(int status);

  Heap heap_;
  std::mt19937_64 seeds_{std::random_device()()};
  bool isSeeded_ = false;
  bool spent_ = false;
  std::unique_ptr<ExecutionLimiter> limiter_;  // before lua_, whose making asks for memory
  lua_State* lua_ = nullptr;
  ScriptPtr loaded_;
  LineSink print_;
};

/// A C++ function as Lua calls it: a std::exception of it becomes an error of the script.
template <int (*kFunction)(lua_State*)>
int guarded(lua_State* lua) {
  std::string message;
  try {
    return kFunction(lua);
  } catch (const std::exception& error) {
    message = error.what();
  }
  return luaL_error(lua, "%s", message.c_str());
}

}  // namespace jobq::lua
