// Expected failures inside core: a function returns a value, or a failure with the reason. Failures of the
// infrastructure are exceptions (sdk/include/jobq/error.h).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace jobq {

/// A fault of one field: a sentence with the name of the field and the remedy. `field` is empty if the fault is about
/// the whole.
struct FieldFault {
  std::string field;
  std::string message;
};
using FieldFaults = std::vector<FieldFault>;

/// The reason why a function has no value to return.
struct Failure {
  enum class Kind {
    invalid,   ///< the caller's data is wrong
    notFound,  ///< the object of the call does not exist
  };

  Kind kind = Kind::invalid;
  FieldFaults faults;  ///< at least one

  /// Returns all sentences, joined by "; ". Never empty: plugins may fail without a text.
  std::string message() const {
    std::string all;
    for (const FieldFault& fault : faults) all += (all.empty() ? "" : "; ") + fault.message;
    return all.empty() ? "no reason was given" : all;
  }
};

/// Returns the failure with one sentence.
inline Failure invalid(std::string message, std::string field = {}) {
  return {Failure::Kind::invalid, {{std::move(field), std::move(message)}}};
}
inline Failure notFound(std::string message) { return {Failure::Kind::notFound, {{{}, std::move(message)}}}; }

/// A value or a failure. operator* and operator-> throw std::bad_variant_access without a value, failure() throws with
/// one: check operator bool first. Result<void> has no value: a success or a failure. A function with more to say than
/// the sentences of a Failure, such as the status of an answer, names another type of reason.
template <class Value, class Reason = Failure>
class [[nodiscard]] Result {
 public:
  Result(Value value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Reason reason) : content_(std::in_place_index<1>, std::move(reason)) {}

  explicit operator bool() const { return content_.index() == 0; }
  const Value& operator*() const& { return std::get<0>(content_); }
  Value& operator*() & { return std::get<0>(content_); }
  Value&& operator*() && { return std::get<0>(std::move(content_)); }
  const Value* operator->() const { return &std::get<0>(content_); }
  Value* operator->() { return &std::get<0>(content_); }
  const Reason& failure() const { return std::get<1>(content_); }

 private:
  std::variant<Value, Reason> content_;
};

template <class Reason>
class [[nodiscard]] Result<void, Reason> {
 public:
  Result() = default;
  Result(Reason reason) : content_(std::move(reason)) {}

  explicit operator bool() const { return content_.index() == 0; }
  const Reason& failure() const { return std::get<1>(content_); }

 private:
  std::variant<std::monostate, Reason> content_;
};

/// Puts the value of `from` into `to`. Without a value, leaves `to` unchanged and returns the failure.
template <class To, class Value>
Result<void> assign(To& to, Result<Value> from) {
  if (!from) return from.failure();
  to = To(*std::move(from));
  return {};
}

}  // namespace jobq
