#include "mmkey/cbor.h"

#include "mmkey/error.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using mmkey::Value;

namespace {

std::string hex(const Value& value) { return mmkey::to_hex(value.encoded()); }

Value nested(unsigned levels) {
    Value value = Value::array({});
    for (unsigned i = 1; i < levels; ++i) value = Value::array({&value, 1});
    return value;
}

}  // namespace

// Expectations: RFC 8949, appendix A, and its section 4.2.1 where the appendix is silent.

TEST_CASE("integers have the shortest head") {
    CHECK(hex(Value::uint(0)) == "00");
    CHECK(hex(Value::uint(23)) == "17");
    CHECK(hex(Value::uint(24)) == "1818");
    CHECK(hex(Value::uint(255)) == "18ff");
    CHECK(hex(Value::uint(256)) == "190100");
    CHECK(hex(Value::uint(1000000)) == "1a000f4240");
    CHECK(hex(Value::uint(1000000000000)) == "1b000000e8d4a51000");
    CHECK(hex(Value::uint(std::numeric_limits<std::uint64_t>::max())) == "1bffffffffffffffff");
    CHECK(hex(Value::negative(0)) == "20");
    CHECK(hex(Value::negative(99)) == "3863");
    CHECK(hex(Value::negative(std::numeric_limits<std::uint64_t>::max())) == "3bffffffffffffffff");
}

TEST_CASE("floats take the shortest form that keeps the value") {
    CHECK(hex(Value::real(0.0)) == "f90000");
    CHECK(hex(Value::real(-0.0)) == "f98000");
    CHECK(hex(Value::real(1.5)) == "f93e00");
    CHECK(hex(Value::real(65504.0)) == "f97bff");
    CHECK(hex(Value::real(65505.0)) == "fa477fe100");
    CHECK(hex(Value::real(5.960464477539063e-8)) == "f90001");
    CHECK(hex(Value::real(0.00006103515625)) == "f90400");
    CHECK(hex(Value::real(0x1p-25)) == "fa33000000");
    CHECK(hex(Value::real(100000.0)) == "fa47c35000");
    CHECK(hex(Value::real(3.4028234663852886e+38)) == "fa7f7fffff");
    CHECK(hex(Value::real(1.1)) == "fb3ff199999999999a");
    CHECK(hex(Value::real(1.0e+300)) == "fb7e37e43c8800759c");
    CHECK(hex(Value::real(std::numeric_limits<double>::infinity())) == "f97c00");
    CHECK(hex(Value::real(-std::numeric_limits<double>::infinity())) == "f9fc00");
    CHECK(hex(Value::real(-std::numeric_limits<double>::quiet_NaN())) == "f97e00");
}

TEST_CASE("maps are sorted by the bytes of their encoded keys, whatever order they came in") {
    const Value map = Value::map({{"aa", Value::uint(1)}, {"b", Value::uint(2)}, {"", Value::null()}});
    CHECK(hex(map) ==
          "a360f6616202626161"
          "01");
    CHECK(hex(Value::map({})) == "a0");
}

TEST_CASE("token ids are a little-endian uint32 array of RFC 8746") {
    const std::vector<std::uint32_t> ids{1, 0x01020304};
    CHECK(hex(Value::tokens(ids)) ==
          "d8464801000000"
          "04030201");
}

TEST_CASE("one, one point nought and true are three values") {
    CHECK(Value::uint(1) != Value::real(1.0));
    CHECK(Value::uint(1) != Value::boolean(true));
    CHECK(Value::bytes(mmkey::as_bytes("a")) != Value::text("a"));
}

TEST_CASE("a number gives back its value, and nothing else is one") {
    for (const double x : {0.0, 1.5, -2.25, 5.960464477539063e-8, 65504.0, 100000.0, 1.1, 1e300})
        CHECK(Value::real(x).number() == x);
    CHECK(Value::uint(300).number() == 300.0);
    CHECK(Value::negative(299).number() == -300.0);
    CHECK_FALSE(Value::text("1").number().has_value());
    CHECK_FALSE(Value::boolean(true).number().has_value());
}

TEST_CASE("what has no canonical form is refused") {
    CHECK_THROWS_AS(Value::text("\xed\xa0\x80"), mmkey::InvalidRequest);  // a lone surrogate
    CHECK_THROWS_AS(Value::text("\xc0\x80"), mmkey::InvalidRequest);      // an overlong form
    CHECK_THROWS_AS(Value::text("\xf4\x90\x80\x80"), mmkey::InvalidRequest);
    CHECK_THROWS_AS(Value::text("\xe2\x82"), mmkey::InvalidRequest);
    CHECK_THROWS_AS(Value::map({{"a", Value()}, {"a", Value()}}), mmkey::InvalidRequest);
    CHECK_NOTHROW(nested(32));
    CHECK_THROWS_AS(nested(33), mmkey::InvalidRequest);
    CHECK_NOTHROW(Value::text("\xf0\x9f\x98\x80 \xe6\xbc\xa2 \xc3\xa9"));
}
