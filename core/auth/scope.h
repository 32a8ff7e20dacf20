// The rights of API keys, and the rights that a route demands.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace jobq {

/// A right of a key (core/http/API.md, "Scopes"). A key with the scope `admin` has every scope. No key has the scope
/// `none`, which stands for a route without a key.
enum class Scope : std::uint8_t { none = 0, client = 1, submit = 2, read = 4, monitor = 8, worker = 16, admin = 32 };

struct ScopeName {
  Scope scope;
  const char* name;
};
/// The scopes of keys with their names, in the order of the API's pages.
inline constexpr std::array<ScopeName, 6> kScopeNames{{{Scope::client, "client"},
                                                       {Scope::submit, "submit"},
                                                       {Scope::read, "read"},
                                                       {Scope::monitor, "monitor"},
                                                       {Scope::worker, "worker"},
                                                       {Scope::admin, "admin"}}};

/// The scopes that permit a call, as a column of the table of routes: a key needs one of the scopes. A route without a
/// value does not compile.
class RouteAccess {
 public:
  /// `Scope::none` permits calls without a key.
  constexpr RouteAccess(Scope scope) : scopes_(static_cast<std::uint8_t>(scope)) {}

  /// Returns the access of any key.
  static constexpr RouteAccess anyKey() {
    RouteAccess all(Scope::none);
    for (const ScopeName& each : kScopeNames) all = all | each.scope;
    return all.withBoundKeys();
  }

  constexpr RouteAccess operator|(Scope other) const {
    RouteAccess joined = *this;
    joined.scopes_ |= static_cast<std::uint8_t>(other);
    return joined;
  }
  /// Permits keys that are bound to endpoints to call a route without an endpoint in the path. Such a route shows only
  /// the endpoints of the key.
  constexpr RouteAccess withBoundKeys() const {
    RouteAccess wider = *this;
    wider.takesBoundKeys_ = true;
    return wider;
  }

  constexpr bool permits(Scope scope) const { return (scopes_ & static_cast<std::uint8_t>(scope)) != 0; }
  constexpr bool takesBoundKeys() const { return takesBoundKeys_; }
  bool operator==(const RouteAccess&) const = default;

 private:
  std::uint8_t scopes_;
  bool takesBoundKeys_ = false;
};

constexpr RouteAccess operator|(Scope first, Scope second) { return RouteAccess(first) | second; }

/// Returns the names of all scopes of keys, with a comma between two names.
std::string scopeList();

}  // namespace jobq
