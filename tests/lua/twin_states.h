// Two Lua states that differ in their pattern functions alone: the stock ones judge ours.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>

#include "plugins/lua/execution_limiter.h"

namespace jobq::lua {

/// One state with the standard libraries, a Watch that is not armed, and the words of kWords. This thread only.
class TestState {
 public:
  enum class Patterns { kStock, kOwn };
  explicit TestState(Patterns patterns);

  /// What an expression comes to: "true" and its values, or "false" and the error's message, quoted.
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

/// Expects that both states answer the same, and returns what they say.
class TwinStates {
 public:
  std::string answer(const std::string& expression);

  TestState& stock() { return stock_; }
  TestState& own() { return own_; }

 private:
  TestState stock_{TestState::Patterns::kStock};
  TestState own_{TestState::Patterns::kOwn};
};

/// A string as an expression of Lua.
std::string literal(const std::string& text);

}  // namespace jobq::lua
