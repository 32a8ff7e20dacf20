// Ends a script whose time is over. Lua's instruction hook looks at the clock for everything that Lua runs; a C
// function whose work grows with its arguments counts its steps here instead, because no hook fires inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <lua.hpp>
#include <string>

namespace jobq::lua {

/// Of one lua_State; the thread that runs it only.
class ExecutionLimiter {
 public:
  /// Why the script has to end now; empty: it goes on. Asked every few microseconds.
  using Judge = std::function<std::string()>;

  /// `plain`: the largest block with which scripts go on for as long as they may.
  ExecutionLimiter(lua_State* lua, std::size_t plain);

  /// A script begins: `judge` decides how long it goes on, until disarm().
  void arm(Judge judge);
  void disarm();

  /// Steps of about the price of comparing two characters. Raises a Lua error when the script has to end.
  void spend(lua_State* lua, std::uint64_t steps) {
    if (steps < left_) {
      left_ -= steps;
    } else {
      checkDeadline(lua);
    }
  }

  /// Of finding a key in a table. In a large one it may walk a chain that was made to be long.
  void spendOnLookup(lua_State* lua) { spend(lua, 4 + largest_ / 4096); }

  /// Looks at once: for one step that may take long however it is asked, such as a chain of metatables.
  void checkDeadline(lua_State* lua);

  /// At the end of a script, for what one C function may have taken there. Who came to his end without a look and holds
  /// nothing large has done too little for one.
  void checkAtEnd(lua_State* lua) {
    if (hasChecked_ || largest_ > 0) checkDeadline(lua);
  }

  /// The largest block of memory that the script holds. One instruction may copy, compare or hash it, or search all of
  /// it: the larger it is, the fewer go by between two looks. `always`: none does. May be called from the allocator.
  void setLargest(std::size_t bytes, bool always) {
    if (bytes != largest_ || always != always_) adaptTo(bytes, always);
  }

  std::size_t largest() const { return largest_; }

  /// The next instruction looks. May be called from the allocator.
  void checkSoon();

  /// This coroutine runs from now on.
  void enter(lua_State* lua) {
    current_ = lua;
    tighten();
  }

  /// Whether the script has used little of the C stack yet: closing coroutines within one another is counted by
  /// nothing in Lua 5.4.4.
  bool hasStack() const;

  /// For a C function that waits: the script has to end, and will as soon as the function looks or returns.
  bool isOver();

  /// Why the script was ended; empty when it was not.
  const std::string& reason() const { return reason_; }

  /// Of any thread (coroutine) of the state.
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
  const char* stack_ = nullptr;  // where it was when the script began
  Judge judge_;
  std::string reason_;
  std::uint64_t left_ = kStepsPerCheck;
  bool hasChecked_ = false;  // since the script began
};

}  // namespace jobq::lua
