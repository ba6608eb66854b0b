// SPDX-License-Identifier: Apache-2.0
#include "core/observe/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <utility>

namespace cafetiere {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // Castagnoli, bits reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

/// The format stores CRCs rotated and shifted, because a CRC of data that holds CRCs is weak.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u; }

template <class T>
void put_fixed(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// The wire format of protocol buffers, of which the Event message needs three kinds of field.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_key(std::string& out, uint32_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

/// Event{1: wall_time}, the start of every payload.
std::string event_at(std::chrono::system_clock::time_point time) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_fixed(event, std::chrono::duration<double>(time.time_since_epoch()).count());
  return event;
}

/// Summary.Value{1: tag, 2: simple_value}.
std::string scalar(std::string_view tag, double value) {
  std::string out;
  put_bytes(out, 1, tag);
  put_key(out, 2, kFixed32);
  put_fixed(out, static_cast<float>(value));
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string tfrecord(std::string_view payload) {
  std::string record;
  put_fixed(record, static_cast<uint64_t>(payload.size()));
  put_fixed(record, masked_crc(record));
  record.append(payload);
  put_fixed(record, masked_crc(payload));
  return record;
}

Result<std::unique_ptr<TensorBoardSink>> TensorBoardSink::open(const std::string& folder,
                                                               Logger log) {
  const auto now = std::chrono::system_clock::now();
  const auto stamp = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::string path = fmt::format("{}/events.out.tfevents.{}.{}", folder, stamp.count(), ::getpid());
  CFT_ASSIGN(EventFile file, EventFile::open(path, "wbe", "TensorBoard file", std::move(log)));
  std::unique_ptr<TensorBoardSink> sink(new TensorBoardSink(std::move(file), std::move(path)));
  std::string event = event_at(now);
  put_bytes(event, 3, "brain.Event:2");
  sink->write(event);
  return sink;
}

void TensorBoardSink::write(std::string_view event) { file_.append(tfrecord(event)); }

void TensorBoardSink::write_scalars(int64_t step, const std::string& prefix,
                                    const NamedValues& values) {
  std::string summary;
  for (const auto& [name, value] : values) {
    put_bytes(summary, 1, scalar(prefix + "/" + name, value));
  }
  std::string event = event_at(std::chrono::system_clock::now());
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 5, summary);
  write(event);
}

void TensorBoardSink::progress(const Progress& p) {
  NamedValues values = {{"loss", p.loss},
                        {"lr", p.lr},
                        {"rows_per_s", p.rows_per_s},
                        {"wait_data", p.wait_data},
                        {"wait_comm", p.wait_comm},
                        {"epoch", p.epoch}};
  values.insert(values.end(), p.outputs.begin(), p.outputs.end());
  write_scalars(p.step, "train", values);
}

void TensorBoardSink::test(const TestResult& t) {
  write_scalars(t.step, names_.of(t.net), t.outputs);
}

}  // namespace cafetiere
