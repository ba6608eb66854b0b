// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * Owns one native object. close() frees it; a Cleaner does so for an object that was forgotten.
 * Not for use by several threads at a time, except cancel() where a class offers it.
 */
public abstract class Handle implements AutoCloseable {
  private static final Cleaner CLEANER = Cleaner.create();

  private final Address address;
  private final Cleaner.Cleanable cleanable;

  /** Takes over the native object at `address`, which `destroy` frees. */
  protected Handle(long address, LongConsumer destroy) {
    this.address = new Address(address, destroy);
    this.cleanable = CLEANER.register(this, this.address);
  }

  /** Frees the native object; a second call does nothing. */
  @Override
  public final void close() {
    cleanable.clean();
  }

  /** Calls a native function with the address; the object stays alive meanwhile. */
  protected final <T> T call(LongFunction<T> function) {
    try {
      return function.apply(address.get(getClass()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** The address, where a lambda would be garbage; the caller keeps this object reachable meanwhile. */
  protected final long handle() {
    return address.get(getClass());
  }

  /** Calls a native function with the address of a second handle, which is there meanwhile. */
  protected static void runWith(Handle other, LongConsumer function) {
    other.run(function);
  }

  /** Like call(), for functions without a result. */
  protected final void run(LongConsumer function) {
    try {
      function.accept(address.get(getClass()));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** Calls a native function unless the object is freed, and keeps close() waiting meanwhile. */
  protected final void runUnlessClosed(LongConsumer function) {
    address.runUnlessFreed(function);
  }

  /** The address apart from the handle, because a Cleaner's action must not reach its object. */
  private static final class Address implements Runnable {
    private final LongConsumer destroy;
    private long value;

    Address(long value, LongConsumer destroy) {
      this.value = value;
      this.destroy = destroy;
    }

    synchronized long get(Class<?> type) {
      if (value == 0) {
        throw new IllegalStateException("this " + type.getSimpleName() + " is closed");
      }
      return value;
    }

    synchronized void runUnlessFreed(LongConsumer function) {
      if (value != 0) {
        function.accept(value);
      }
    }

    @Override
    public synchronized void run() {
      runUnlessFreed(destroy);
      value = 0;
    }
  }
}
