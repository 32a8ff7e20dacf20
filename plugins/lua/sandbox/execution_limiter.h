// Ends a script whose time is over. Lua's instruction hook checks the deadline of all code that Lua runs. C functions
// whose work grows with their arguments count their steps here instead, because no hook fires inside a C function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <optional>
#include <string>

namespace jobq::lua {

/// Decides how long a script continues. The caller of arm() owns the object and keeps it until disarm(). Used only by
/// the thread that runs the script.
class EndCondition {
 public:
  /// Returns the reason why the script has to end now, or nullopt if the script may continue. Called every few
  /// microseconds, also from within C functions, until the first reason. Raises no Lua error. Throws only
  /// std::bad_alloc, which is an error of the script.
  virtual std::optional<std::string> reasonToEnd() = 0;

 protected:
  ~EndCondition() = default;
};

/// Belongs to one lua_State. Used only by the thread that runs the state.
class ExecutionLimiter {
 public:
  /// Registers the limiter in the extra space of `lua`, so that of() finds the limiter. `plain`: size in bytes
  /// of a block up to which the hook runs every kInstructionsPerCheck instructions; a larger block shortens the
  /// interval in proportion.
  ExecutionLimiter(lua_State* lua, std::size_t plain);

  /// Starts the limits for a new script. `endCondition` decides how long the script continues, until disarm().
  void arm(EndCondition& endCondition);
  /// Switches the checks off; the condition is not used any more. The reason stays readable until the next arm().
  void disarm();

  /// Counts `steps` of work, each of about the price of comparing two characters. Checks the deadline when the present
  /// budget of steps is used up. Raises a Lua error when the script has to end.
  void spend(lua_State* lua, std::uint64_t steps) {
    if (steps < left_) {
      left_ -= steps;
    } else {
      checkDeadline(lua);
    }
  }

  /// Counts the steps of finding a key in a table. An attacker can choose keys that collide in one chain, so the price
  /// grows with the largest block: one step for each 4,096 bytes.
  void spendOnLookup(lua_State* lua) { spend(lua, 4 + largest_ / 4096); }

  /// Checks the deadline at once, for a single step of unbounded duration such as a chain of metatables. Raises a Lua
  /// error when the script has to end.
  void checkDeadline(lua_State* lua);

  /// Final deadline check when a script returns, because its last C function may have overrun. Skipped when no check
  /// ran so far and the script holds no large block: such a script cannot have run for long.
  void checkAtEnd(lua_State* lua) {
    if (hasChecked_ || largest_ > 0) checkDeadline(lua);
  }

  /// Sets the size of the largest large block (Heap::largest()), in bytes; 0 while the script holds no large block. A
  /// single instruction may copy, compare, hash or search the whole block, so a larger block means fewer instructions
  /// between two checks. `always`: the hook runs after each instruction, set when an allocation was refused. May be
  /// called from the allocator.
  void setLargeBlock(std::size_t bytes, bool always) {
    if (bytes != largest_ || always != always_) adaptTo(bytes, always);
  }

  /// Returns the size in bytes given to setLargeBlock().
  std::size_t largest() const { return largest_; }

  /// Makes the next instruction check the deadline. May be called from the allocator.
  void checkSoon();

  /// Tells the limiter that the coroutine `lua` runs from now on.
  void enter(lua_State* lua) {
    current_ = lua;
    tighten();
  }

  /// Returns true while the script has used less than 64 KB of the C stack. Lua 5.4.4 has no bound of its own when
  /// closing one coroutine closes another, and so on.
  bool hasStackLeft() const;

  /// Returns true if a C function that waits has to return now, because the script has to end. The next check raises
  /// the error; this function raises none.
  bool isOver();

  /// Returns the reason why the script was ended, or nullopt if the script ended by itself.
  const std::optional<std::string>& reason() const { return reason_; }

  /// Returns the limiter of the state to which the thread (coroutine) `lua` belongs.
  static ExecutionLimiter& of(lua_State* lua) { return **static_cast<ExecutionLimiter**>(lua_getextraspace(lua)); }

 private:
  static void hook(lua_State* lua, lua_Debug*);
  void tighten();
  void adaptTo(std::size_t largest, bool always);

  static constexpr std::uint64_t kStepsPerCheck = 20'000;
  static constexpr int kInstructionsPerCheck = 200;

  lua_State* const main_;
  const std::size_t plain_;
  lua_State* current_;
  std::size_t largest_ = 0;
  bool always_ = false;
  int interval_ = kInstructionsPerCheck;
  const char* stack_ = nullptr;           // address of the stack when the script began
  EndCondition* endCondition_ = nullptr;  // null while no script runs
  std::optional<std::string> reason_;
  std::uint64_t left_ = kStepsPerCheck;
  bool hasChecked_ = false;  // since the script began
};

}  // namespace jobq::lua
