// SPDX-License-Identifier: Apache-2.0
// PNG with libpng. Its errors end in longjmp: no object with a destructor may live in a function
// that calls setjmp, nor in a frame between that and the library.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "core/data/image_codecs.h"

namespace cafetiere {
namespace {

/// The text of the last error; png_error() jumps to the setjmp of the library's caller.
struct PngErrors {
  char text[160] = "";

  [[noreturn]] static void fail(png_structp png, png_const_charp message) {
    auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
    std::strncpy(errors->text, message, sizeof errors->text - 1);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  Status status() const { return invalid_argument(fmt::format("PNG: {}", text)); }
};

class PngDecoder {
 public:
  explicit PngDecoder(std::span<const uint8_t> bytes) : left_(bytes) {
    png_ =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::fail, PngErrors::ignore);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  bool read_header(ImageColor color) {
    if (!png_ || !info_ || setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, this, read_bytes);
    png_read_info(png_, info_);
    const int type = png_get_color_type(png_, info_);
    const bool alpha = type & PNG_COLOR_MASK_ALPHA ||
                       (type & PNG_COLOR_MASK_COLOR && png_get_valid(png_, info_, PNG_INFO_tRNS));
    const bool colored = type & PNG_COLOR_MASK_COLOR;
    if (color == ImageColor::kStored) channels_ = alpha ? 4 : colored ? 3 : 1;
    if (color == ImageColor::kColor) channels_ = 3;
    convert(type);
    return true;
  }

  /// `rows`: a buffer with a pointer for each row.
  bool read_pixels(uint8_t* pixels, uint8_t** rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_read_update_info(png_, info_);
    const size_t stride = size_t(width()) * size_t(channels_);
    if (png_get_rowbytes(png_, info_) != stride) png_error(png_, "unexpected size of a row");
    for (int64_t y = 0; y < height(); ++y) rows[y] = pixels + size_t(y) * stride;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  int64_t height() const { return png_get_image_height(png_, info_); }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int channels() const { return channels_; }
  Status error() const { return errors_.status(); }

 private:
  static void read_bytes(png_structp png, png_bytep to, size_t size) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > self->left_.size()) png_error(png, "the file ends too early");
    std::memcpy(to, self->left_.data(), size);
    self->left_ = self->left_.subspan(size);
  }

  /// Converts the pixels of the file to 8 bits and the requested channels.
  void convert(int type) {
    const bool colored = type & PNG_COLOR_MASK_COLOR;
    png_set_strip_16(png_);
    if (channels_ == 4) {
      png_set_tRNS_to_alpha(png_);
    } else {
      png_set_strip_alpha(png_);
    }
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (!colored && png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (colored && channels_ == 1) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    if (colored && channels_ > 1) png_set_bgr(png_);
    if (!colored && channels_ > 1) png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
  }

  PngErrors errors_;
  std::span<const uint8_t> left_;
  png_structp png_;
  png_infop info_;
  int channels_ = 1;
};

class PngEncoder {
 public:
  PngEncoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::fail,
                                   PngErrors::ignore);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
  }
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  bool write(const Image& image, std::string* to) {
    if (!png_ || !info_ || setjmp(png_jmpbuf(png_))) return false;
    png_set_write_fn(png_, to, append, [](png_structp) {});
    const int type = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                     : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                           : PNG_COLOR_TYPE_RGB_ALPHA;
    png_set_IHDR(png_, info_, png_uint_32(image.width), png_uint_32(image.height), 8, type,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    png_set_bgr(png_);
    const size_t stride = size_t(image.width) * size_t(image.channels);
    for (int y = 0; y < image.height; ++y) {
      png_write_row(png_, image.pixels.data() + size_t(y) * stride);
    }
    png_write_end(png_, nullptr);
    return true;
  }

  Status error() const { return errors_.status(); }

 private:
  static void append(png_structp png, png_bytep bytes, size_t size) {
    static_cast<std::string*>(png_get_io_ptr(png))
        ->append(reinterpret_cast<const char*>(bytes), size);
  }

  PngErrors errors_;
  png_structp png_;
  png_infop info_;
};

}  // namespace

Result<Image> decode_png(std::span<const uint8_t> bytes, ImageColor color) {
  PngDecoder decoder(bytes);
  if (!decoder.read_header(color)) return decoder.error();
  CFT_ASSIGN(Image image, new_image(decoder.height(), decoder.width(), decoder.channels()));
  std::vector<uint8_t*> rows(size_t(image.height));
  if (!decoder.read_pixels(image.pixels.data(), rows.data())) return decoder.error();
  return image;
}

Result<std::string> encode_png(const Image& image) {
  PngEncoder encoder;
  std::string bytes;
  if (!encoder.write(image, &bytes)) return encoder.error();
  return bytes;
}

}  // namespace cafetiere
