// SPDX-License-Identifier: Apache-2.0
// Functions that glibc got after version 2.17, for machines that lack them. The archives that are
// linked in were compiled against a newer glibc and call these; nobody outside the library sees them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// ---- 2.38: numbers in C23's notation; the headers of that glibc redirect to these ----------------

long old_strtol(const char* text, char** end, int base) __asm__("strtol");
unsigned long old_strtoul(const char* text, char** end, int base) __asm__("strtoul");
long long old_strtoll(const char* text, char** end, int base) __asm__("strtoll");
unsigned long long old_strtoull(const char* text, char** end, int base) __asm__("strtoull");
int old_vsscanf(const char* text, const char* format, va_list values) __asm__("vsscanf");

long __isoc23_strtol(const char* text, char** end, int base) { return old_strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return old_strtoul(text, end, base);
}
long long __isoc23_strtoll(const char* text, char** end, int base) {
  return old_strtoll(text, end, base);
}
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return old_strtoull(text, end, base);
}
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int read = old_vsscanf(text, format, values);
  va_end(values);
  return read;
}

// ---- 2.36, 2.25: random bytes -------------------------------------------------------------------

int getentropy(void* out, size_t size) {
  for (size_t done = 0; done < size;) {
    const long got = syscall(SYS_getrandom, (char*)out + done, size - done, 0);
    if (got < 0 && errno != EINTR) return -1;
    if (got > 0) done += (size_t)got;
  }
  return 0;
}

uint32_t arc4random(void) {
  uint32_t value;
  if (getentropy(&value, sizeof value) != 0) abort();  // as glibc's does: it cannot tell of an error
  return value;
}

// ---- 2.35: which module an address belongs to, for the unwinder ---------------------------------

struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* module, size_t size, void* data) {
  (void)size;
  struct Search* search = data;
  uintptr_t frames = 0;
  int inside = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &module->dlpi_phdr[i];
    const uintptr_t begin = module->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = begin;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) {
      inside = 1;
      search->found->dlfo_map_start = (void*)begin;
      search->found->dlfo_map_end = (void*)(begin + part->p_memsz);
    }
  }
  if (!inside) return 0;
  search->found->dlfo_eh_frame = (void*)frames;
  return frames ? 1 : 2;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  memset(found, 0, sizeof *found);
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

// ---- 2.33: stat under its own name --------------------------------------------------------------

#ifdef __x86_64__
enum { kStatVersion = 1 };
#else
enum { kStatVersion = 0 };
#endif
struct stat;
struct stat64;
#pragma GCC visibility push(default)
int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);
int __xstat64(int version, const char* path, struct stat64* out);
int __fxstat64(int version, int file, struct stat64* out);
#pragma GCC visibility pop
int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kStatVersion, file, out); }
int stat64(const char* path, struct stat64* out) { return __xstat64(kStatVersion, path, out); }
int fstat64(int file, struct stat64* out) { return __fxstat64(kStatVersion, file, out); }

// ---- 2.32: whether reference counts may do without atomic instructions: never -------------------

char __libc_single_threaded = 0;

// ---- 2.30: waiting on the monotonic clock -------------------------------------------------------

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

/// Where glibc lacks it the wait is one on the wall clock, as libstdc++'s was then.
static int wait_on_wall_clock(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                              const struct timespec* until) {
  enum { kSecond = 1000000000 };
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += kSecond;
    --wall.tv_sec;
  } else if (wall.tv_nsec >= kSecond) {
    wall.tv_nsec -= kSecond;
    ++wall.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &wall);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  static _Atomic uintptr_t known = 1;  // 1: not looked for yet
  uintptr_t own = known;
  if (own == 1) known = own = (uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  if (own) return ((ClockWait*)own)(condition, mutex, clock, until);
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  return wait_on_wall_clock(condition, mutex, clock, until);
}

// ---- 2.27: memory as a file ---------------------------------------------------------------------

int memfd_create(const char* name, unsigned flags) {
  return (int)syscall(SYS_memfd_create, name, flags);
}

// ---- 2.18: destructors of a thread's objects ----------------------------------------------------

typedef void Destroy(void*);
typedef int AtThreadExit(Destroy*, void*, void*);
struct Exit {
  Destroy* destroy;
  void* object;
  struct Exit* next;
};
static pthread_key_t exits;
static pthread_once_t exits_once = PTHREAD_ONCE_INIT;

static void run_exits(void* list) {
  for (struct Exit* exit = list; exit;) {
    struct Exit* next = exit->next;
    exit->destroy(exit->object);
    free(exit);
    exit = next;
  }
}
static void make_exits(void) { pthread_key_create(&exits, run_exits); }

int __cxa_thread_atexit_impl(Destroy* destroy, void* object, void* module) {
  AtThreadExit* own = (AtThreadExit*)(uintptr_t)dlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl");
  if (own) return own(destroy, object, module);
  pthread_once(&exits_once, make_exits);
  struct Exit* exit = malloc(sizeof *exit);
  if (!exit) return -1;
  *exit = (struct Exit){destroy, object, pthread_getspecific(exits)};
  return pthread_setspecific(exits, exit);
}

#pragma GCC visibility pop
