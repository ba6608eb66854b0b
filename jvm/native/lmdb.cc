// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.lmdb: databases whose bytes a Java object reads, and new ones.
#include <memory>

#include "jvm/native/jni_support.h"

#define CFT_LMDB(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_lmdb_NativeLmdb_##name

using namespace cafetiere::jni;

namespace {

/// The Java object that reads a file, for as long as something native may ask for bytes.
class JavaFile {
 public:
  JavaFile(JNIEnv* env, jobject reader) : reader_(env->NewGlobalRef(reader)) {
    env->GetJavaVM(&vm_);
    read_ = env->GetMethodID(env->GetObjectClass(reader), "read", "(JLjava/nio/ByteBuffer;)V");
  }
  ~JavaFile() { env()->DeleteGlobalRef(reader_); }
  JavaFile(const JavaFile&) = delete;
  JavaFile& operator=(const JavaFile&) = delete;

  /// cft_file.read. An exception of the object's stays pending, and is what Java gets.
  static int read(void* context, uint64_t offset, void* out, uint64_t bytes) {
    const auto* self = static_cast<const JavaFile*>(context);
    JNIEnv* env = self->env();
    if (bytes > std::numeric_limits<jint>::max()) {
      throw_error(env, CFT_INVALID_ARGUMENT, "a value has 2 GiB or more, which Java cannot hold");
      return 1;
    }
    jobject buffer = env->NewDirectByteBuffer(out, static_cast<jlong>(bytes));
    if (!buffer) return 1;
    env->CallVoidMethod(self->reader_, self->read_, static_cast<jlong>(offset), buffer);
    env->DeleteLocalRef(buffer);
    return env->ExceptionCheck() ? 1 : 0;
  }

 private:
  /// Of the calling thread, which is always one of Java's.
  JNIEnv* env() const {
    void* env = nullptr;
    vm_->GetEnv(&env, JNI_VERSION_1_8);
    return static_cast<JNIEnv*>(env);
  }

  JavaVM* vm_ = nullptr;
  jobject reader_;
  jmethodID read_ = nullptr;
};

struct Database {
  std::shared_ptr<JavaFile> file;
  cft_lmdb* lmdb = nullptr;
  ~Database() { cft_lmdb_close(lmdb); }
};

struct Cursor {
  std::shared_ptr<JavaFile> file;
  cft_lmdb_cursor* cursor = nullptr;
  ~Cursor() { cft_lmdb_cursor_destroy(cursor); }
};

}  // namespace

CFT_LMDB(jlong, open)
(JNIEnv* env, jclass, jbyteArray name, jlong size, jobject reader) try {
  auto database = std::make_unique<Database>();
  database->file = std::make_shared<JavaFile>(env, reader);
  const std::string text = to_text(env, name);
  const cft_file file{sizeof file, database->file.get(), static_cast<uint64_t>(size),
                      &JavaFile::read, text.c_str()};
  if (!check(env, cft_lmdb_open(nullptr, &file, &database->lmdb))) return 0;
  return address_of(database.release());
}
CFT_CATCH(jlong)

CFT_LMDB(jlong, records)(JNIEnv* env, jclass, jlong database) try {
  int64_t records = 0;
  check(env, cft_lmdb_records(object<Database>(database)->lmdb, &records));
  return records;
}
CFT_CATCH(jlong)

CFT_LMDB(jboolean, hasRanges)(JNIEnv* env, jclass, jlong database) try {
  int32_t ranges = 0;
  check(env, cft_lmdb_has_ranges(object<Database>(database)->lmdb, &ranges));
  return ranges ? JNI_TRUE : JNI_FALSE;
}
CFT_CATCH(jboolean)

CFT_LMDB(jbyteArray, split)(JNIEnv* env, jclass, jlong database, jint ranges) try {
  return bytes_from(env, [&](void** keys, uint64_t* bytes) {
    return cft_lmdb_split(object<Database>(database)->lmdb, ranges, keys, bytes);
  });
}
CFT_CATCH(jbyteArray)

CFT_LMDB(void, close)(JNIEnv* env, jclass, jlong database) try {
  delete object<Database>(database);
}
CFT_CATCH(void)

CFT_LMDB(jlong, cursorCreate)
(JNIEnv* env, jclass, jlong database, jbyteArray from, jbyteArray to) try {
  const auto* of = object<Database>(database);
  const Bytes first(env, from), end(env, to);
  auto cursor = std::make_unique<Cursor>();
  cursor->file = of->file;
  if (!check(env, cft_lmdb_cursor_create(of->lmdb, first.data(), first.size(), end.data(),
                                         end.size(), &cursor->cursor))) {
    return 0;
  }
  return address_of(cursor.release());
}
CFT_CATCH(jlong)

CFT_LMDB(jboolean, cursorNext)
(JNIEnv* env, jclass, jlong cursor, jboolean values, jobjectArray views) try {
  const void *key = nullptr, *value = nullptr;
  uint64_t key_bytes = 0, value_bytes = 0;
  const int code = cft_lmdb_cursor_next(object<Cursor>(cursor)->cursor, &key, &key_bytes,
                                        values ? &value : nullptr, &value_bytes);
  if (!check(env, code) || !key) return JNI_FALSE;
  const bool put =
      put_view(env, views, 0, key, key_bytes) && put_view(env, views, 1, value, value_bytes);
  return put ? JNI_TRUE : JNI_FALSE;
}
CFT_CATCH(jboolean)

CFT_LMDB(void, cursorDestroy)(JNIEnv* env, jclass, jlong cursor) try {
  delete object<Cursor>(cursor);
}
CFT_CATCH(void)

CFT_LMDB(jlong, create)(JNIEnv* env, jclass, jbyteArray path) try {
  cft_lmdb_writer* writer = nullptr;
  check(env, cft_lmdb_create(to_text(env, path).c_str(), &writer));
  return address_of(writer);
}
CFT_CATCH(jlong)

CFT_LMDB(jlong, createLevelDb)(JNIEnv* env, jclass, jbyteArray path) try {
  cft_lmdb_writer* writer = nullptr;
  check(env, cft_leveldb_create(to_text(env, path).c_str(), &writer));
  return address_of(writer);
}
CFT_CATCH(jlong)

CFT_LMDB(void, put)(JNIEnv* env, jclass, jlong writer, jbyteArray key, jbyteArray value) try {
  const Bytes k(env, key), v(env, value);
  check(env, cft_lmdb_put(object<cft_lmdb_writer>(writer), k.data(), k.size(), v.data(), v.size()));
}
CFT_CATCH(void)

CFT_LMDB(void, commit)(JNIEnv* env, jclass, jlong writer) try {
  check(env, cft_lmdb_commit(object<cft_lmdb_writer>(writer)));
}
CFT_CATCH(void)

CFT_LMDB(void, writerClose)(JNIEnv* env, jclass, jlong writer) try {
  cft_lmdb_writer_close(object<cft_lmdb_writer>(writer));
}
CFT_CATCH(void)
