// A state machine as a table: each row is a permitted change of the state.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>

namespace jobq {

/// A permitted change of state.
template <class State, class Event>
struct StateChange {
  State from;
  Event event;
  State to;
};

/// Returns the state after `event`, or an empty optional if the table has no row for `event` in the state `from`.
template <class State, class Event, std::size_t kRows>
constexpr std::optional<State> nextState(const std::array<StateChange<State, Event>, kRows>& table, State from,
                                         Event event) noexcept {
  for (const StateChange<State, Event>& t : table) {
    if (t.from == from && t.event == event) return t.to;
  }
  return std::nullopt;
}

/// A state that changes along the rows of `kTable` only. Begins as the first state of the enumeration. An event without
/// a row is refused, and changes nothing. Not thread-safe.
template <const auto& kTable>
class TableState {
  using Row = typename std::remove_cvref_t<decltype(kTable)>::value_type;

 public:
  using State = decltype(Row::from);
  using Event = decltype(Row::event);

  State get() const noexcept { return state_; }
  /// Returns true if the table has a row for the event in the current state.
  bool permits(Event event) const noexcept { return nextState(kTable, state_, event).has_value(); }
  /// Changes the state by the event. Returns false for a refused event.
  bool apply(Event event) noexcept {
    const std::optional<State> next = nextState(kTable, state_, event);
    state_ = next.value_or(state_);
    return next.has_value();
  }

 private:
  State state_{};
};

}  // namespace jobq
