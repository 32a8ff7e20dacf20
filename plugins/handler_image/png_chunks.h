// A PNG without what a decoder does not need. libpng reports oddities of side chunks (colour profiles, text, sizes in
// metres) on stderr past libgd's hook, and unpacks some of them: they are left out before it sees the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jobq::image {

/// The file with its header, palette, transparency and pixels only, checksums verified; nothing when it is damaged or
/// cut off. For files that begin with the PNG signature and a header. Pure.
std::optional<std::string> essentialPng(std::string_view file);

}  // namespace jobq::image
