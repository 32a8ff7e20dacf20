// The place where a script runs: a Lua state with a memory limit, the libraries of scripts, and an ExecutionLimiter. A
// state runs one script after another. Each script gets an environment of its own, and no change made by a script is
// visible to the next script.
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

#include "sandbox/execution_limiter.h"
#include "sandbox/heap.h"
#include "sandbox/library_opener.h"
#include "sandbox/script.h"

namespace jobq::lua {

/// A script failed or was ended. The message of what() addresses the author of the script, with file and line if Lua
/// knows both.
class ScriptError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Limit in bytes of the message of a ScriptError for an error that the script raised.
inline constexpr std::size_t kLongestMessage = 16'384;

/// Receives the lines of print() and the like. The caller of Sandbox::run() owns the object and keeps it during the
/// call.
class LineSink {
 public:
  /// Takes a line without its line feed. Called on the thread of the script. A std::exception becomes an error of the
  /// script.
  virtual void writeLine(std::string_view line) = 0;

 protected:
  ~LineSink() = default;
};

/// Used by one thread at a time.
class Sandbox {
 public:
  /// Sizes in bytes of the largest block with which a script runs 200 instructions between two checks of the deadline.
  /// Filters run on threads that serve callers and cannot wait for long instructions. Handlers with megabytes of data
  /// would be slowed down by frequent checks.
  static constexpr std::size_t kPlainOfFilters = 16U << 10;
  static constexpr std::size_t kPlainOfHandlers = 512U << 10;

  /// `memory`: bytes for all objects that scripts hold at a time. `plain`: kPlainOfFilters or kPlainOfHandlers.
  /// `libraries` is used in the constructor only. Throws std::bad_alloc if the libraries do not fit.
  Sandbox(std::size_t memory, std::size_t plain, const LibraryOpener& libraries);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  /// Runs the script's text anew in a fresh environment, then `body` with the returned function on top of the stack,
  /// until `endCondition` ends both. `lines` receives what the script prints; null drops the lines. Blocks until the
  /// script has ended. Throws ScriptError if the script fails or is ended.
  void run(const ScriptPtr& script, EndCondition& endCondition, LineSink* lines,
           const std::function<void(lua_State*)>& body);

  /// Returns the bytecode of a text, compiled under the same limits. `chunk`: name of the text in messages. Throws
  /// ScriptError if the text does not compile.
  std::string compile(std::string_view text, const std::string& chunk, EndCondition& endCondition);

  /// Returns true if the state should be replaced: the state holds more than a few scripts leave behind, a block was
  /// refused, or a script was ended half way.
  bool isSpent() const { return spent_ || heap_.held() > kKept || heap_.wasRefused(); }

  /// Returns true if math.random was seeded for the running script. Each run begins unseeded.
  bool isSeeded() const { return isSeeded_; }
  void setSeeded() { isSeeded_ = true; }
  lua_Integer nextSeed() { return static_cast<lua_Integer>(seeds_()); }

  /// Returns the sandbox that owns the state of `lua`.
  static Sandbox& of(lua_State* lua);
  /// Hands a line to the sink of the running script.
  void print(std::string_view line) const {
    if (lines_ != nullptr) lines_->writeLine(line);
  }

 private:
  static constexpr std::size_t kKept = 1U << 20;
  static constexpr std::size_t kLittle = 1U << 18;  // a quarter of the smallest lua.memory

  static void* resize(void* self, void* block, std::size_t before, std::size_t after);
  static int perform(lua_State* lua);
  static int translate(lua_State* lua);
  std::optional<std::string> attempt(lua_CFunction work, void* task, EndCondition& endCondition);
  void forget();
  std::string describe(int status);

  Heap heap_;
  std::mt19937_64 seeds_{std::random_device()()};
  bool isSeeded_ = false;
  bool spent_ = false;
  std::unique_ptr<ExecutionLimiter> limiter_;  // before lua_, whose creation allocates memory
  lua_State* lua_ = nullptr;
  ScriptPtr loaded_;
  LineSink* lines_ = nullptr;  // null between two scripts
};

/// Sets the function that gives errors a text if they are not strings. `spell` gets the error as its argument and
/// returns a string of at most kLongestMessage bytes. Called by each LibraryOpener, once per state.
void setErrorText(lua_State* lua, lua_CFunction spell);

/// Wraps a C++ function for Lua: a std::exception thrown by the function becomes an error of the script.
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
