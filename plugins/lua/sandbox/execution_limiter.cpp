#include "sandbox/execution_limiter.h"

#include <algorithm>

namespace jobq::lua {

static_assert(LUA_VERSION_RELEASE_NUM == 50404,
              "Another release of Lua: check in ldebug.c that lua_sethook allocates no memory and may be called during "
              "an allocation, in lstate.c that coroutines inherit hooks, and in ldo.c how nested calls are counted");

ExecutionLimiter::ExecutionLimiter(lua_State* lua, std::size_t plain) : main_(lua), plain_(plain), current_(lua) {
  *static_cast<ExecutionLimiter**>(lua_getextraspace(lua)) = this;
}

void ExecutionLimiter::arm(EndCondition& endCondition) {
  endCondition_ = &endCondition;
  reason_.reset();
  left_ = kStepsPerCheck;
  hasChecked_ = false;
  current_ = main_;
  stack_ = static_cast<const char*>(__builtin_frame_address(0));
  // Coroutines inherit the hook of the thread that creates them.
  lua_sethook(main_, hook, LUA_MASKCOUNT, interval_);
}

void ExecutionLimiter::disarm() {
  lua_sethook(main_, nullptr, 0, 0);
  endCondition_ = nullptr;
}

void ExecutionLimiter::adaptTo(std::size_t bytes, bool always) {
  largest_ = bytes;
  always_ = always;
  interval_ =
      bytes <= plain_ ? kInstructionsPerCheck : std::max(1, static_cast<int>(kInstructionsPerCheck * plain_ / bytes));
  if (always_ || reason_) interval_ = 1;
  if (endCondition_ != nullptr) tighten();
}

// The interval is only shortened here, because setting a hook restarts its count. The hook itself lengthens the
// interval.
void ExecutionLimiter::tighten() {
  if (lua_gethookcount(current_) > interval_) lua_sethook(current_, hook, LUA_MASKCOUNT, interval_);
}

void ExecutionLimiter::checkSoon() {
  if (endCondition_ != nullptr && lua_gethookcount(current_) > 1) lua_sethook(current_, hook, LUA_MASKCOUNT, 1);
}

bool ExecutionLimiter::hasStackLeft() const {
  constexpr std::ptrdiff_t kMost = 64 * 1024;
  return stack_ - static_cast<const char*>(__builtin_frame_address(0)) < kMost;
}

void ExecutionLimiter::hook(lua_State* lua, lua_Debug*) {
  ExecutionLimiter& self = of(lua);
  self.checkDeadline(lua);
  if (lua_gethookcount(lua) != self.interval_) lua_sethook(lua, hook, LUA_MASKCOUNT, self.interval_);
}

bool ExecutionLimiter::isOver() {
  if (!reason_ && endCondition_ != nullptr) reason_ = endCondition_->reasonToEnd();
  if (reason_) left_ = 0;
  return reason_.has_value();
}

// After the end every instruction raises, in every thread that runs. A pcall that swallows the error reaches only its
// next instruction.
void ExecutionLimiter::checkDeadline(lua_State* lua) {
  left_ = always_ ? 0 : kStepsPerCheck;
  hasChecked_ = true;
  if (!isOver()) return;
  interval_ = 1;
  if (lua_gethookcount(lua) != 1 || lua_gethook(lua) == nullptr) lua_sethook(lua, hook, LUA_MASKCOUNT, interval_);
  // No position is added to the message: the reason suffices, and a million variables may have to be closed while the
  // error travels.
  lua_pushlstring(lua, reason_->data(), reason_->size());
  lua_error(lua);
}

}  // namespace jobq::lua
