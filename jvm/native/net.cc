// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.net.Net.
#include "jvm/native/net.h"

#include <nlohmann/json.hpp>

using namespace cafetiere::jni;

namespace cafetiere::jni {

Listener::Listener(JNIEnv* env, jobject listener)
    : listener_(env, listener), native_(env, env->FindClass("cafetiere/core/net/NativeNet")) {
  const auto method = [&](const char* name, const char* signature) {
    return env->GetStaticMethodID(static_cast<jclass>(native_.get()), name, signature);
  };
  message_ = method("message", "(Lcafetiere/core/net/NetListener;I[B)V");
  pass_ = method("pass", "(Lcafetiere/core/net/NetListener;)V");
  gradients_ = method("gradients", "(Lcafetiere/core/net/NetListener;)V");
  host_.struct_size = sizeof host_;
  host_.context = this;
  if (!listener) return;
  host_.log = &Listener::log;
  host_.on_pass = &Listener::pass;
  host_.on_gradients_ready = &Listener::gradients;
}

void Listener::log(void* context, int level, const char* text) {
  const auto* self = static_cast<const Listener*>(context);
  JNIEnv* env = self->listener_.env();
  if (env->ExceptionCheck()) return;  // Java is told of nothing else until it has this
  if (jbyteArray bytes = to_java(env, text)) {
    env->CallStaticVoidMethod(static_cast<jclass>(self->native_.get()), self->message_,
                              self->listener_.get(), jint{level}, bytes);
    env->DeleteLocalRef(bytes);
  }
}

int Listener::tell(jmethodID method) const {
  JNIEnv* env = listener_.env();
  if (!env->ExceptionCheck()) {
    env->CallStaticVoidMethod(static_cast<jclass>(native_.get()), method, listener_.get());
  }
  return env->ExceptionCheck() ? 1 : 0;
}

int Listener::pass(void* context) {
  const auto* self = static_cast<const Listener*>(context);
  return self->tell(self->pass_);
}

int Listener::gradients(void* context) {
  const auto* self = static_cast<const Listener*>(context);
  return self->tell(self->gradients_);
}

}  // namespace cafetiere::jni

namespace {

using Json = nlohmann::json;

/// An array of objects, which `make` gives one by one; null with an exception pending.
template <typename Make>
jobjectArray array_of(JNIEnv* env, size_t size, Make make) {
  jclass type = env->FindClass("java/lang/Object");
  jobjectArray array =
      type ? env->NewObjectArray(static_cast<jsize>(size), type, nullptr) : nullptr;
  for (size_t i = 0; array && i < size; ++i) {
    jobject element = make(i);
    if (!element) return nullptr;
    env->SetObjectArrayElement(array, static_cast<jsize>(i), element);
    env->DeleteLocalRef(element);
  }
  return array;
}

jobject numbers(JNIEnv* env, const Json& list) {
  const std::vector<jint> values = list.get<std::vector<jint>>();
  jintArray array = env->NewIntArray(static_cast<jsize>(values.size()));
  if (array) env->SetIntArrayRegion(array, 0, static_cast<jsize>(values.size()), values.data());
  return array;
}

jobject text(JNIEnv* env, const Json& value) { return to_java(env, value.get<std::string>()); }

jobject layer(JNIEnv* env, const Json& of) {
  constexpr const char* kFields[] = {"name", "type", "bottoms", "tops", "params"};
  return array_of(env, std::size(kFields), [&](size_t i) {
    const Json& field = of.at(kFields[i]);
    return field.is_string() ? text(env, field) : numbers(env, field);
  });
}

/// A view of floats that lie in the engine.
jobject view(JNIEnv* env, float* values, int64_t count) {
  static float nothing;
  return env->NewDirectByteBuffer(values ? values : &nothing,
                                  static_cast<jlong>(count * int64_t{sizeof(float)}));
}

struct Release {
  void operator()(cft_memory* memory) const { cft_memory_release(memory); }
};
using Memory = std::unique_ptr<cft_memory, Release>;

}  // namespace

CFT_NET(jlong, create)(JNIEnv* env, jclass, jbyteArray options, jobject listener) try {
  const std::string text = to_text(env, options);
  return make_handle(env, listener, [&](NetOwner& owner) {
    return cft_net_create(text.c_str(), owner.listener.host(), &owner.net);
  });
}
CFT_CATCH(jlong)

CFT_NET(jbyteArray, describe)(JNIEnv* env, jclass, jlong net) try {
  return text_from(env, [&](char** out) { return cft_net_describe(net_of(net), out); });
}
CFT_CATCH(jbyteArray)

/// {name, {layer: {name, type, bottoms, tops, params}..}, {blob's name..}, inputs, outputs}
CFT_NET(jobjectArray, structure)(JNIEnv* env, jclass, jlong net) try {
  char* out = nullptr;
  if (!check(env, cft_net_describe(net_of(net), &out))) return nullptr;
  const std::unique_ptr<char, void (*)(void*)> owned(out, cft_free);
  const Json json = Json::parse(owned.get());
  const Json &layers = json.at("layers"), &blobs = json.at("blobs");
  return array_of(env, 5, [&](size_t i) -> jobject {
    switch (i) {
      case 0:
        return text(env, json.at("name"));
      case 1:
        return array_of(env, layers.size(), [&](size_t n) { return layer(env, layers[n]); });
      case 2:
        return array_of(env, blobs.size(),
                        [&](size_t n) { return text(env, blobs[n].at("name")); });
      case 3:
        return numbers(env, json.at("inputs"));
      default:
        return numbers(env, json.at("outputs"));
    }
  });
}
CFT_CATCH(jobjectArray)

/// {sizes, data, diff, {what keeps data, what keeps diff}}: each is released on its own.
CFT_NET(jobjectArray, blob)(JNIEnv* env, jclass, jlong net, jboolean param, jint number) try {
  cft_blob blob{};
  blob.struct_size = sizeof blob;
  Memory kept[2];
  for (Memory& memory : kept) {
    cft_memory* made = nullptr;
    const auto get = param ? &cft_net_param : &cft_net_blob;
    if (!check(env, get(net_of(net), number, &blob, &made))) return nullptr;
    memory.reset(made);
  }
  int64_t count = 1;
  for (int i = 0; i < blob.axes; ++i) count *= blob.dims[i];
  if (count > std::numeric_limits<jint>::max() / int64_t{sizeof(float)}) {
    throw_error(env, CFT_INVALID_ARGUMENT,
                ("number " + std::to_string(number) + " has " + std::to_string(count) +
                 " floats, more than the 2 GiB of a Java buffer")
                    .c_str());
    return nullptr;
  }
  jlong releases[2];
  jobjectArray parts = array_of(env, 4, [&](size_t i) -> jobject {
    if (i == 1 || i == 2) return view(env, i == 1 ? blob.data : blob.diff, count);
    jlongArray array = env->NewLongArray(i == 0 ? blob.axes : 2);
    if (!array) return nullptr;
    if (i == 0) {
      env->SetLongArrayRegion(array, 0, blob.axes, blob.dims);
    } else {
      for (int k = 0; k < 2; ++k) releases[k] = address_of(kept[k].get());
      env->SetLongArrayRegion(array, 0, 2, releases);
    }
    return array;
  });
  if (parts) {
    for (Memory& memory : kept) memory.release();  // Java's from here on
  }
  return parts;
}
CFT_CATCH(jobjectArray)

CFT_NET(void, release)(JNIEnv* env, jclass, jlong memory) try {
  cft_memory_release(object<cft_memory>(memory));
}
CFT_CATCH(void)

CFT_NET(void, reshapeBlob)(JNIEnv* env, jclass, jlong net, jint number, jlongArray dims) try {
  std::vector<jlong> sizes(dims ? env->GetArrayLength(dims) : 0);
  if (!sizes.empty()) {
    env->GetLongArrayRegion(dims, 0, static_cast<jsize>(sizes.size()), sizes.data());
  }
  const std::vector<int64_t> axes(sizes.begin(), sizes.end());
  check(env,
        cft_net_reshape_blob(net_of(net), number, axes.data(), static_cast<int32_t>(axes.size())));
}
CFT_CATCH(void)

CFT_NET(void, reshape)(JNIEnv* env, jclass, jlong net) try {
  check(env, cft_net_reshape(net_of(net)));
}
CFT_CATCH(void)

CFT_NET(jfloat, forward)(JNIEnv* env, jclass, jlong net, jint from, jint to) try {
  float loss = 0;
  check(env, cft_net_forward(net_of(net), from, to, &loss));
  return loss;
}
CFT_CATCH(jfloat)

CFT_NET(void, backward)(JNIEnv* env, jclass, jlong net, jint from, jint to) try {
  check(env, cft_net_backward(net_of(net), from, to));
}
CFT_CATCH(void)

CFT_NET(void, clearParamDiffs)(JNIEnv* env, jclass, jlong net) try {
  check(env, cft_net_clear_param_diffs(net_of(net)));
}
CFT_CATCH(void)

/// Java has held the buffers' sizes against the rows.
CFT_NET(void, setInput)
(JNIEnv* env, jclass, jlong handle, jbyteArray layer, jobject data, jobject labels,
 jlong rows) try {
  auto* net = object<NetHandle>(handle);
  const std::string name = to_text(env, layer);
  std::vector<std::unique_ptr<GlobalRef>> kept;
  kept.push_back(std::make_unique<GlobalRef>(env, data));
  kept.push_back(std::make_unique<GlobalRef>(env, labels));
  const auto* values = static_cast<const float*>(env->GetDirectBufferAddress(data));
  const auto* classes = static_cast<const float*>(env->GetDirectBufferAddress(labels));
  if (check(env, cft_net_set_input(net->net, name.c_str(), values, classes, rows))) {
    net->owner->fed[{net->net, name}] = std::move(kept);
  }
}
CFT_CATCH(void)

CFT_NET(void, copyFrom)(JNIEnv* env, jclass, jlong net, jbyteArray path) try {
  check(env, cft_net_copy_from(net_of(net), to_text(env, path).c_str()));
}
CFT_CATCH(void)

CFT_NET(void, shareWith)(JNIEnv* env, jclass, jlong net, jlong other) try {
  check(env, cft_net_share_with(net_of(net), net_of(other)));
}
CFT_CATCH(void)

CFT_NET(void, save)(JNIEnv* env, jclass, jlong net, jbyteArray path, jboolean hdf5) try {
  check(env, cft_net_save(net_of(net), to_text(env, path).c_str(), hdf5 ? 1 : 0));
}
CFT_CATCH(void)

/// Of a net and of a solver alike.
CFT_NET(void, destroy)(JNIEnv* env, jclass, jlong handle) try { delete object<NetHandle>(handle); }
CFT_CATCH(void)
