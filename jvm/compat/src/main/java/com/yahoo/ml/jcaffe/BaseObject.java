// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

/**
 * An object with native memory. {@link #deallocate} gives it back at once; else that happens when Java
 * no longer reaches the object.
 */
public abstract class BaseObject {
  /** Nonzero until the object is deallocated. */
  protected long address;

  /** An object that has nothing to give back. */
  public BaseObject() {
    this(0);
  }

  /** An object whose {@link #deallocate(long)} is to be called with {@code nativeAddress}. */
  public BaseObject(long nativeAddress) {
    address = nativeAddress;
  }

  /** Gives the memory back; a second call does nothing. */
  public synchronized void deallocate() {
    if (address != 0) {
      deallocate(address);
      address = 0;
    }
  }

  /** Gives back what belongs to the address. Called once. */
  protected abstract void deallocate(long address);
}
