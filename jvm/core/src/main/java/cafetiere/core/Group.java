// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/** This rank's end of a group of ranks that train together. */
public final class Group extends Handle {
  /** Opens the end and listens; `options` is the JSON that cft_group_create describes. */
  public Group(String options) {
    super(create(options), Native::groupDestroy);
  }

  /** "IP:port", to be handed to the other ranks. */
  public String address() {
    return call(group -> Native.text(Native.groupAddress(group)));
  }

  /**
   * Takes the place of the secret of the options, before {@link #connect}: for ranks that agree on one
   * when they exchange their addresses.
   */
  public void setSecret(String secret) {
    run(group -> Native.groupSetSecret(group, Native.utf8(secret)));
  }

  /** Connects to all ranks; `addresses` is the JSON array of their addresses, by rank. */
  public void connect(String addresses) {
    run(group -> Native.groupConnect(group, Native.utf8(addresses)));
  }

  /**
   * Returns when all ranks have called it. Not while a trainer or solver works with this end on another
   * thread.
   */
  public void barrier() {
    run(Native::groupBarrier);
  }

  /** Makes every pending and later call of any rank fail at once. Any thread; safe after close. */
  public void cancel() {
    runUnlessClosed(Native::groupCancel);
  }

  private static long create(String options) {
    NativeLibrary.load();
    return Native.groupCreate(Native.utf8(options));
  }
}
