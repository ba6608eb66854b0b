// SPDX-License-Identifier: Apache-2.0
// JPEG with libjpeg-turbo. Its errors end in longjmp: no object with a destructor may live in a
// function that calls setjmp, nor in a frame between that and the library.
#include <fmt/format.h>  // before jpeglib.h, which needs its FILE and size_t
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include "core/data/image_codecs.h"

namespace cafetiere {
namespace {

constexpr int kMaxScans = 500;  // a malicious file with thousands of scans would take hours

/// The library's error handler; `base` must be first, since the library passes that pointer back.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";

  JpegErrors() {
    jpeg_std_error(&base);
    base.error_exit = [](j_common_ptr info) { fail(info); };
    base.emit_message = [](j_common_ptr info, int) {
      // A truncated file would otherwise be decoded with the rest gray.
      if (info->err->msg_code == JWRN_JPEG_EOF) fail(info);
    };
    base.output_message = [](j_common_ptr) {};
  }

  [[noreturn]] static void fail(j_common_ptr info) {
    auto* errors = reinterpret_cast<JpegErrors*>(info->err);
    info->err->format_message(info, errors->text);
    std::longjmp(errors->jump, 1);
  }
};

class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = &errors_.base;
    progress_.progress_monitor = limit_scans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }  // no-op if it was not created
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  bool read_header(std::span<const uint8_t> bytes, ImageColor color) {
    if (setjmp(errors_.jump)) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    const bool gray =
        color == ImageColor::kGray || (color == ImageColor::kStored && info_.num_components == 1);
    channels_ = gray ? 1 : 3;
    info_.out_color_space = four_inks() ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
    return true;
  }

  /// `inks`: a buffer for a row of CMYK, if the image has four channels.
  bool read_pixels(uint8_t* pixels, uint8_t* inks) {
    if (setjmp(errors_.jump)) return false;
    jpeg_start_decompress(&info_);
    const size_t stride = size_t(info_.output_width) * size_t(channels_);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* row = pixels + info_.output_scanline * stride;
      uint8_t* target = four_inks() ? inks : row;
      jpeg_read_scanlines(&info_, &target, 1);
      if (four_inks()) mix(inks, row);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  /// Whether an image of the declared size can be in a file of this size: the finest channel has at
  /// least one bit per 8 x 8 block, unless arithmetic coding is used.
  bool is_credible(size_t file_bytes) const {
    constexpr int64_t kMaxPixelsPerByte = 64 * 8;
    return info_.arith_code || height() * width() / kMaxPixelsPerByte <= int64_t(file_bytes);
  }
  int64_t height() const { return info_.image_height; }
  int64_t width() const { return info_.image_width; }
  int channels() const { return channels_; }
  bool four_inks() const { return info_.num_components == 4; }
  Status error() const { return invalid_argument(fmt::format("JPEG: {}", errors_.text)); }

 private:
  static void limit_scans(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
    info->err->msg_code = JERR_BAD_PROGRESSION;
    JpegErrors::fail(info);
  }

  /// Converts cyan, magenta, yellow and black, inverted as written by Adobe's programs.
  void mix(const uint8_t* inks, uint8_t* row) const {
    for (JDIMENSION x = 0; x < info_.output_width; ++x, inks += 4, row += channels_) {
      const int black = inks[3];
      const auto light = [&](int ink) { return black - ((255 - inks[ink]) * black >> 8); };
      const int red = light(0), green = light(1), blue = light(2);
      if (channels_ == 1) {
        row[0] = gray_of(blue, green, red);
      } else {
        row[0] = uint8_t(blue), row[1] = uint8_t(green), row[2] = uint8_t(red);
      }
    }
  }

  JpegErrors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  int channels_ = 0;
};

class JpegEncoder {
 public:
  JpegEncoder() { info_.err = &errors_.base; }
  ~JpegEncoder() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  bool write(const Image& image, int quality) {
    if (setjmp(errors_.jump)) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &bytes_, &size_);
    info_.image_height = JDIMENSION(image.height);
    info_.image_width = JDIMENSION(image.width);
    info_.input_components = image.channels;
    info_.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                           : image.channels == 3 ? JCS_EXT_BGR
                                                 : JCS_EXT_BGRX;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    const size_t stride = size_t(image.width) * size_t(image.channels);
    while (info_.next_scanline < info_.image_height) {
      auto* row = const_cast<uint8_t*>(image.pixels.data() + info_.next_scanline * stride);
      jpeg_write_scanlines(&info_, &row, 1);  // only reads the row
    }
    jpeg_finish_compress(&info_);
    return true;
  }

  std::string bytes() const { return {reinterpret_cast<const char*>(bytes_), size_}; }
  Status error() const { return invalid_argument(fmt::format("JPEG: {}", errors_.text)); }

 private:
  JpegErrors errors_;
  jpeg_compress_struct info_{};
  unsigned char* bytes_ = nullptr;  // allocated by the library with malloc
  unsigned long size_ = 0;
};

}  // namespace

Result<Image> decode_jpeg(std::span<const uint8_t> bytes, ImageColor color) {
  JpegDecoder decoder;
  if (!decoder.read_header(bytes, color)) return decoder.error();
  if (!decoder.is_credible(bytes.size())) {
    return invalid_argument(fmt::format("JPEG: {} bytes cannot be an image of {} x {} pixels",
                                        bytes.size(), decoder.height(), decoder.width()));
  }
  CFT_ASSIGN(Image image, new_image(decoder.height(), decoder.width(), decoder.channels()));
  std::vector<uint8_t> inks(decoder.four_inks() ? size_t(image.width) * 4 : 0);
  if (!decoder.read_pixels(image.pixels.data(), inks.data())) return decoder.error();
  return image;
}

Result<std::string> encode_jpeg(const Image& image, int quality) {
  JpegEncoder encoder;
  if (!encoder.write(image, quality)) return encoder.error();
  return encoder.bytes();
}

}  // namespace cafetiere
