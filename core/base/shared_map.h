// A sorted map with versions. Two versions share the elements without a change, so a new version copies some hundred
// pointers, however many elements there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jobq {

/// The elements lie in pieces of up to 128, in the order of the keys. `keyOf` returns the key of an element. A single
/// thread changes a map, without readers; any number of threads read a map without changes.
template <class Element, const std::string& (*keyOf)(const Element&)>
class SharedMap {
 public:
  using Value = std::shared_ptr<const Element>;
  /// New elements by key; null removes the element.
  using Changes = std::map<std::string, Value, std::less<>>;

  std::size_t size() const noexcept { return size_; }

  /// Returns null if there is no element with the key.
  Value find(std::string_view key) const {
    const auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), key, isBeforePiece);
    if (piece == pieces_.begin()) return nullptr;
    const Piece& values = **std::prev(piece);
    const auto at = std::lower_bound(values.begin(), values.end(), key, isBefore);
    return at == values.end() || keyOf(**at) != key ? nullptr : *at;
  }

  /// Returns up to `most` elements behind the key `after`, in the order of the keys.
  std::vector<Value> page(std::string_view after, std::size_t most) const {
    std::vector<Value> found;
    auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), after, isBeforePiece);
    if (piece != pieces_.begin()) --piece;
    for (; piece != pieces_.end() && found.size() < most; ++piece) {
      auto at = std::lower_bound((*piece)->begin(), (*piece)->end(), after, isBefore);
      if (at != (*piece)->end() && keyOf(**at) == after) ++at;
      const auto count = std::min<std::size_t>(static_cast<std::size_t>((*piece)->end() - at), most - found.size());
      found.insert(found.end(), at, at + static_cast<std::ptrdiff_t>(count));
    }
    return found;
  }

  /// Returns all elements, in the order of the keys.
  std::vector<Value> all() const { return page({}, size_); }

  /// Returns true if both maps are the same version.
  bool isSame(const SharedMap& other) const { return pieces_ == other.pieces_; }

  /// Makes the changes. Returns the number of elements in new pieces. Without memory the call throws std::bad_alloc
  /// without a change.
  std::size_t apply(const Changes& changes) {
    if (changes.empty()) return 0;
    std::size_t copied = 0;
    std::size_t size = size_;
    std::vector<PiecePtr> pieces;
    static const PiecePtr kNoPiece = std::make_shared<const Piece>();
    auto change = changes.begin();
    for (std::size_t i = 0; i < std::max<std::size_t>(pieces_.size(), 1); ++i) {
      const PiecePtr& former = pieces_.empty() ? kNoPiece : pieces_[i];
      const auto end = i + 1 < pieces_.size() ? changes.lower_bound(keyOf(*pieces_[i + 1]->front())) : changes.end();
      if (change == end) {
        pieces.push_back(former);
        continue;
      }
      const Piece merged = merge(*former, change, end);
      size = size + merged.size() - former->size();
      copied += merged.size();
      split(merged, pieces);
      change = end;
    }
    pieces_ = std::move(pieces);
    size_ = size;
    return copied;
  }

 private:
  using Piece = std::vector<Value>;  // never empty in pieces_
  using PiecePtr = std::shared_ptr<const Piece>;
  static constexpr std::size_t kLongest = 128;

  static bool isBefore(const Value& value, std::string_view key) { return keyOf(*value) < key; }
  static bool isBeforePiece(std::string_view key, const PiecePtr& piece) { return key < keyOf(*piece->front()); }

  static Piece merge(const Piece& former, typename Changes::const_iterator change,
                     typename Changes::const_iterator end) {
    Piece merged;
    auto at = former.begin();
    for (; change != end; ++change) {
      for (; at != former.end() && keyOf(**at) < change->first; ++at) merged.push_back(*at);
      if (at != former.end() && keyOf(**at) == change->first) ++at;
      if (change->second) merged.push_back(change->second);
    }
    merged.insert(merged.end(), at, former.end());
    return merged;
  }

  // Halves, with room for the next changes.
  static void split(const Piece& merged, std::vector<PiecePtr>& pieces) {
    const std::size_t length = merged.size() > kLongest ? kLongest / 2 : kLongest;
    for (auto begin = merged.begin(); begin != merged.end();) {
      const auto end = begin + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(length), merged.end() - begin);
      pieces.push_back(std::make_shared<const Piece>(begin, end));
      begin = end;
    }
  }

  std::vector<PiecePtr> pieces_;
  std::size_t size_ = 0;
};

}  // namespace jobq
