// SPDX-License-Identifier: Apache-2.0
// What every function of the JNI glue needs: bytes in and out, and errors as Java exceptions.
#pragma once

#include <jni.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "cafetiere/c_api.h"

/// A function of the class Native. Its body is a try block, and CFT_CATCH follows: no exception may
/// leave through a frame of Java's.
#define CFT_JNI(type, name) extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_Native_##name
#define CFT_CATCH(type)              \
  catch (...) {                      \
    cafetiere::jni::throw_java(env); \
    return type();                   \
  }

namespace cafetiere::jni {

/// A handle as Java holds it: the object's address.
template <typename T>
T* object(jlong address) {
  return reinterpret_cast<T*>(address);
}

/// The address of an object, for Java to hold.
inline jlong address_of(const void* object) { return reinterpret_cast<jlong>(object); }

/// A new byte[] with a copy of the bytes, or null with a Java exception pending.
inline jbyteArray to_java(JNIEnv* env, const void* bytes, uint64_t size) {
  if (size > static_cast<uint64_t>(std::numeric_limits<jsize>::max())) {
    env->ThrowNew(env->FindClass("java/lang/OutOfMemoryError"),
                  "the bytes do not fit a Java array, which holds 2 GiB at most");
    return nullptr;
  }
  jbyteArray array = env->NewByteArray(static_cast<jsize>(size));
  if (array) {
    env->SetByteArrayRegion(array, 0, static_cast<jsize>(size), static_cast<const jbyte*>(bytes));
  }
  return array;
}

/// The same for text.
inline jbyteArray to_java(JNIEnv* env, const std::string& text) {
  return to_java(env, text.data(), text.size());
}

/// A copy of a byte[] as text; null gives "".
inline std::string to_text(JNIEnv* env, jbyteArray array) {
  std::string text(array ? env->GetArrayLength(array) : 0, '\0');
  if (!text.empty()) {
    env->GetByteArrayRegion(array, 0, static_cast<jsize>(text.size()),
                            reinterpret_cast<jbyte*>(text.data()));
  }
  return text;
}

/// The elements of a byte[] while the object lives; a null array has no data.
class Bytes {
 public:
  Bytes(JNIEnv* env, jbyteArray array)
      : env_(env),
        array_(array),
        data_(array ? env->GetByteArrayElements(array, nullptr) : nullptr) {}
  ~Bytes() {
    if (data_) env_->ReleaseByteArrayElements(array_, data_, JNI_ABORT);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  const void* data() const { return data_; }
  uint64_t size() const { return data_ ? env_->GetArrayLength(array_) : 0; }

 private:
  JNIEnv* env_;
  jbyteArray array_;
  jbyte* data_;
};

/// Puts a view of native memory at a place of an array; false with an exception pending.
inline bool put_view(JNIEnv* env, jobjectArray views, jsize place, const void* bytes,
                     uint64_t size) {
  void* address = const_cast<void*>(bytes ? bytes : "");  // Java is given a view to read
  jobject view = env->NewDirectByteBuffer(address, static_cast<jlong>(size));
  if (view) env->SetObjectArrayElement(views, place, view);
  return !env->ExceptionCheck();
}

/// Throws Native.error(code, message).
inline void throw_error(JNIEnv* env, int code, const char* message) {
  jclass native = env->FindClass("cafetiere/core/Native");
  jmethodID make =
      native ? env->GetStaticMethodID(native, "error", "(I[B)Lcafetiere/core/CafetiereException;")
             : nullptr;
  jbyteArray text = make ? to_java(env, message, std::strlen(message)) : nullptr;
  jobject error = text ? env->CallStaticObjectMethod(native, make, jint{code}, text) : nullptr;
  if (!env->ExceptionCheck()) env->Throw(static_cast<jthrowable>(error));
}

/// Throws the engine's last error unless the code is CFT_OK, or an exception is pending that explains
/// it; tells whether all is well.
inline bool check(JNIEnv* env, int code) {
  if (env->ExceptionCheck()) return false;
  if (code != CFT_OK) throw_error(env, code, cft_last_error());
  return code == CFT_OK;
}

/// Makes a Java exception of the C++ one that is being handled.
inline void throw_java(JNIEnv* env) {
  if (env->ExceptionCheck()) return;
  const auto out_of_memory = [env] {
    env->ThrowNew(env->FindClass("java/lang/OutOfMemoryError"), "no native memory is left");
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::length_error&) {  // of a container that cannot be so large
    out_of_memory();
  } catch (const std::exception& e) {
    throw_error(env, CFT_INTERNAL, e.what());
  } catch (...) {
    throw_error(env, CFT_INTERNAL, "an exception that is none of the standard library's");
  }
}

/// Bytes that a call hands out, as a byte[]: `call` fills a pointer and a size and returns a code.
template <typename Call>
jbyteArray bytes_from(JNIEnv* env, Call call) {
  void* bytes = nullptr;
  uint64_t size = 0;
  if (!check(env, call(&bytes, &size))) return nullptr;
  jbyteArray array = to_java(env, bytes, size);
  cft_free(bytes);
  return array;
}

/// Text that a call hands out, as a byte[]: `call` fills a pointer and returns a code.
template <typename Call>
jbyteArray text_from(JNIEnv* env, Call call) {
  char* text = nullptr;
  if (!check(env, call(&text))) return nullptr;
  jbyteArray array = to_java(env, text);
  cft_free(text);
  return array;
}

}  // namespace cafetiere::jni
