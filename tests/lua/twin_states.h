// Two Lua states with different pattern functions. The stock functions are the reference for the sandbox's functions.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>

#include "plugins/lua/sandbox/execution_limiter.h"

namespace jobq::lua {

/// A state with the standard libraries, an unarmed ExecutionLimiter, and the words of kWords. Used by one thread.
class TestState {
 public:
  enum class Patterns { kStock, kOwn };
  explicit TestState(Patterns patterns);

  /// Returns the result of an expression as "true" and the values, or as "false" and the error's message, quoted.
  std::string answer(const std::string& expression);

  lua_State* lua() { return lua_.get(); }
  ExecutionLimiter& limiter() { return limiter_; }

 private:
  struct Closer {
    void operator()(lua_State* lua) const { lua_close(lua); }
  };
  std::unique_ptr<lua_State, Closer> lua_;
  ExecutionLimiter limiter_;
};

/// Expects that both states answer alike, and returns the answer of the stock state.
class TwinStates {
 public:
  std::string answer(const std::string& expression);

  TestState& stock() { return stock_; }
  TestState& own() { return own_; }

 private:
  TestState stock_{TestState::Patterns::kStock};
  TestState own_{TestState::Patterns::kOwn};
};

/// Returns a string as an expression of Lua.
std::string literal(const std::string& text);

}  // namespace jobq::lua
