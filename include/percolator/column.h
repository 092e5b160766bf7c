// SPDX-License-Identifier: Apache-2.0

// Column<T>: a column's table, name and value type, declared once.
//
//     constexpr Column<int64_t> kBalance("accounts", "balance");
//     constexpr Column<Links> kLinks("pages", "links");       // a protobuf message
//     constexpr NotifyColumn kReindex("pages", "reindex");    // holds no value: see observer.h
//
// The names must be constant expressions, so a Column never dangles, and a malformed table name
// does not compile. Where names are known only at run time, use CellName or CellView with the
// untyped calls of percolator/transaction.h.
//
// ENCODING  std::string: the bytes themselves. Integers, bool and floating point: decimal text that
//           round-trips, readable in `percolator scan`. Protobuf messages: their serialization. To
//           store another type, specialize Codec<T>. To store a type differently in one column,
//           name the codec: Column<uint64_t, BigEndian>.

#ifndef PERCOLATOR_COLUMN_H_
#define PERCOLATOR_COLUMN_H_

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/types.h"

namespace percolator {

// Converts values of type T to and from bytes. Specializations provide:
//
//     using Param = ...;                                       how Set takes it, such as const T&
//     static std::string Encode(Param value);
//     static std::optional<T> Decode(std::string_view bytes);  nullopt if `bytes` encode no T
template <typename T>
struct Codec;

template <>
struct Codec<std::string> {
  using Param = std::string_view;
  static std::string Encode(std::string_view value) { return std::string(value); }
  static std::optional<std::string> Decode(std::string_view bytes) { return std::string(bytes); }
};

namespace internal {

// Not characters, whose signs depend on the machine, nor long double, which the standard library
// cannot always read back.
template <typename T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                 !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                 !std::same_as<T, char32_t> && !std::same_as<T, long double>;

// A number of the same kind as T: not a pointer or an integer for a bool, nor a fraction for an
// integer.
template <typename U, typename T>
concept NumberLike = Number<U> && std::same_as<std::bool_constant<std::same_as<T, bool>>,
                                               std::bool_constant<std::same_as<U, bool>>> &&
    (std::floating_point<T> || !std::floating_point<U>);
template <typename T>
class NumberParam {
 public:
  template <NumberLike<T> U>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr NumberParam(U value) : value_(static_cast<T>(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator T() const { return value_; }

 private:
  T value_;
};

}  // namespace internal

template <internal::Number T>
struct Codec<T> {
  using Param = internal::NumberParam<T>;
  static std::string Encode(T value) {
    char text[64];
    return std::string(text,
                       std::to_chars(text, text + sizeof(text), static_cast<Number>(value)).ptr);
  }
  static std::optional<T> Decode(std::string_view bytes) {
    Number value{};
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), value);
    if (error != std::errc() || end != bytes.data() + bytes.size()) return std::nullopt;
    // A bool that is 2.
    if (static_cast<Number>(static_cast<T>(value)) != value && value == value) return std::nullopt;
    return static_cast<T>(value);
  }

 private:
  // The standard library has no decimal form of bool.
  using Integer =
      std::conditional_t<std::is_signed_v<T> || std::same_as<T, bool>, int64_t, uint64_t>;
  using Number = std::conditional_t<std::is_floating_point_v<T>, T, Integer>;
};

// Any protobuf message. Recognized by its methods, so that this header does not include protobuf. A
// message without its required fields is read as it was written.
template <typename T>
requires requires(const T& in, T& out, const void* bytes, int size) {
  { in.SerializeAsString() } -> std::same_as<std::string>;
  { out.ParsePartialFromArray(bytes, size) } -> std::same_as<bool>;
}
struct Codec<T> {
  using Param = const T&;
  static std::string Encode(const T& message) { return message.SerializeAsString(); }
  static std::optional<T> Decode(std::string_view bytes) {
    T message;
    if (!message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return std::nullopt;
    return message;
  }
};

namespace internal {

// Not constexpr, so that the compiler names it if it is called.
void ATableNameMustMatchLettersDigitsUnderscoreDashUpTo64();
// Checks a table's name when the program is compiled.
consteval std::string_view TableName(std::string_view name) {
  bool valid = !name.empty() && name.size() <= 64;
  for (const char c : name) {
    valid = valid && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-');
  }
  if (!valid) ATableNameMustMatchLettersDigitsUnderscoreDashUpTo64();
  return name;
}

absl::Status DecodeError(CellView cell, size_t bytes);

}  // namespace internal

template <typename T, typename C = Codec<T>>
class Column {
 public:
  using Value = T;
  using Param = typename C::Param;

  consteval Column(std::string_view table, std::string_view name)
      : table_(internal::TableName(table)), name_(name) {}

  constexpr std::string_view table() const { return table_; }
  constexpr std::string_view name() const { return name_; }
  constexpr CellView At(std::string_view row) const { return {table_, row, name_}; }

  static std::string Encode(Param value) { return C::Encode(value); }
  // Returns DataLoss, with the name of the cell, if `bytes` does not hold a T.
  absl::StatusOr<T> Decode(std::string_view row, std::string_view bytes) const {
    std::optional<T> value = C::Decode(bytes);
    if (!value.has_value()) return internal::DecodeError(At(row), bytes.size());
    return *std::move(value);
  }

 private:
  std::string_view table_;
  std::string_view name_;
};

// A column that can be notified and observed but holds no value.
class NotifyColumn {
 public:
  consteval NotifyColumn(std::string_view table, std::string_view name)
      : table_(internal::TableName(table)), name_(name) {}

  constexpr std::string_view table() const { return table_; }
  constexpr std::string_view name() const { return name_; }
  constexpr CellView At(std::string_view row) const { return {table_, row, name_}; }

 private:
  std::string_view table_;
  std::string_view name_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COLUMN_H_
