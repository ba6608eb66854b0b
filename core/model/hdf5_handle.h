// SPDX-License-Identifier: Apache-2.0
// Common to all uses of the HDF5 library in core/model/: closing handles, and suppressing its
// messages.
#pragma once

#include <hdf5.h>

#include <utility>

namespace cafetiere {

/// An HDF5 identifier that is closed with the function for its kind.
class Hdf5Handle {
 public:
  using CloseFn = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, CloseFn close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() { reset(); }

  bool ok() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  void reset() {
    if (ok()) close_(std::exchange(id_, -1));
  }

 private:
  hid_t id_ = -1;
  CloseFn close_ = nullptr;
};

/// Suppresses the library's error messages during its lifetime; our Status reports failures. The
/// first instance also prevents the library from closing files at process exit: handles do that,
/// and it crashes on a file left incomplete by a full disk.
class Hdf5Quiet {
 public:
  Hdf5Quiet() {
    static const herr_t no_atexit = H5dont_atexit();
    (void)no_atexit;  // an error means that the library was already in use
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Hdf5Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Hdf5Quiet(const Hdf5Quiet&) = delete;
  Hdf5Quiet& operator=(const Hdf5Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace cafetiere
