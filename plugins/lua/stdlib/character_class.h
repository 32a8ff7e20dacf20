// The character classes of Lua patterns (%a, %d, ...) as in the C locale, so that scripts behave alike on every
// machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace jobq::lua {

namespace characters {

inline constexpr std::uint16_t kUpper = 1, kLower = 2, kDigit = 4, kHex = 8, kSpace = 16, kControl = 32, kPunct = 64,
                               kNul = 128;
/// A trait, but no class: marks the characters of a pattern that prevent a plain search in string.find.
inline constexpr std::uint16_t kMagic = 256;

constexpr bool between(int c, int first, int last) { return first <= c && c <= last; }

constexpr std::array<std::uint16_t, 256> listTraits() {
  std::array<std::uint16_t, 256> traits{};
  for (int c = 0; c < 128; ++c) {
    std::uint16_t& own = traits[static_cast<std::size_t>(c)];
    if (between(c, 'A', 'Z')) own |= kUpper;
    if (between(c, 'a', 'z')) own |= kLower;
    if (between(c, '0', '9')) own |= kDigit;
    if (between(c, '0', '9') || between(c, 'a', 'f') || between(c, 'A', 'F')) own |= kHex;
    if (c == ' ' || between(c, '\t', '\r')) own |= kSpace;
    if (c < ' ' || c == 127) own |= kControl;
    if (between(c, '!', '~') && (own & (kUpper | kLower | kDigit)) == 0) own |= kPunct;
  }
  traits[0] |= kNul;
  for (const char c : {'^', '$', '*', '+', '?', '.', '(', '[', '%', '-'}) {
    traits[static_cast<unsigned char>(c)] |= kMagic;
  }
  return traits;
}

// A letter and its capital name the same traits. Every other character names no trait.
constexpr std::array<std::uint16_t, 256> listClasses() {
  std::array<std::uint16_t, 256> classes{};
  classes['a'] = kUpper | kLower;
  classes['c'] = kControl;
  classes['d'] = kDigit;
  classes['g'] = kUpper | kLower | kDigit | kPunct;
  classes['l'] = kLower;
  classes['p'] = kPunct;
  classes['s'] = kSpace;
  classes['u'] = kUpper;
  classes['w'] = kUpper | kLower | kDigit;
  classes['x'] = kHex;
  classes['z'] = kNul;  // absent from the present manual, still understood
  for (int c = 'a'; c <= 'z'; ++c) {
    classes[static_cast<std::size_t>(c - 'a' + 'A')] = classes[static_cast<std::size_t>(c)];
  }
  return classes;
}

inline constexpr std::array<std::uint16_t, 256> kTraits = listTraits();
inline constexpr std::array<std::uint16_t, 256> kClasses = listClasses();

}  // namespace characters

/// Returns true if `c` matches `%name`. `name` names a class, the opposite of a class (capitals), or stands for itself.
/// Pure; any thread.
inline bool inClass(unsigned char c, unsigned char name) {
  const std::uint16_t traits = characters::kClasses[name];
  if (traits == 0) return c == name;
  const bool opposite = characters::between(name, 'A', 'Z');
  return ((characters::kTraits[c] & traits) != 0) != opposite;
}

/// Returns true if `c` has a special meaning somewhere in a pattern. A lone `)` or `]` is not counted: the manual's
/// plain find takes both literally. Pure; any thread.
inline bool isMagic(unsigned char c) { return (characters::kTraits[c] & characters::kMagic) != 0; }

}  // namespace jobq::lua
