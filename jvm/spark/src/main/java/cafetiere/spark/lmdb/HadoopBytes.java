// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import cafetiere.core.lmdb.Lmdb;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The bytes of a database by Hadoop path. The engine asks for a page at a time, mostly in the order of
 * the file. Where a read goes on after an earlier one, twice as much as that is read, up to a limit;
 * any other reads no more than what is asked for.
 */
final class HadoopBytes implements Lmdb.Source, AutoCloseable {
  /** Branches, leaves and values may each go on at a place of their own. */
  private static final int WINDOWS = 4;
  /** What is left of a value's last page, which the engine does not ask for. */
  private static final int PAGE_REST = 4096;

  /** Bytes of the file from {@code start} on. */
  private static final class Window {
    private byte[] bytes = new byte[0];
    private long start;
    private int size;
    private long used;

    boolean has(long offset) {
      return offset >= start && offset < start + size;
    }

    boolean isShortlyBefore(long offset) {
      return size > 0 && offset >= start + size && offset < start + size + PAGE_REST;
    }
  }

  private final String name;
  private final long size;
  private final int most;
  private final FSDataInputStream stream;
  private final Window[] windows = new Window[WINDOWS];
  private long uses;

  /** Opens a file of {@code size} bytes, to read at most {@code most} bytes at a time ahead. */
  HadoopBytes(String path, long size, int most, Configuration conf) {
    this.name = path;
    this.size = size;
    this.most = most;
    for (int i = 0; i < WINDOWS; i++) windows[i] = new Window();
    Path file = new Path(path);
    try {
      stream = file.getFileSystem(conf).open(file);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot open " + path + ": " + e.getMessage(), e);
    }
  }

  /** A database in it, of which errors have the path. */
  Lmdb open() {
    return new Lmdb(name, size, this);
  }

  @Override
  public void read(long offset, ByteBuffer out) {
    long at = offset;
    while (out.hasRemaining()) {
      Window window = at(at, out.remaining());
      int from = (int) (at - window.start);
      int count = Math.min(out.remaining(), window.size - from);
      out.put(window.bytes, from, count);
      at += count;
    }
  }

  /** A window that has the byte there. */
  private Window at(long offset, int wanted) {
    Window oldest = windows[0];
    Window before = null;
    for (Window window : windows) {
      if (window.has(offset)) {
        window.used = ++uses;
        return window;
      }
      if (window.isShortlyBefore(offset)) before = window;
      if (window.used < oldest.used) oldest = window;
    }
    Window window = before == null ? oldest : before;
    int ahead = before == null ? 0 : Math.min(most, 2 * window.size);
    fill(window, offset, (int) Math.min(size - offset, Math.max(wanted, ahead)));
    return window;
  }

  private void fill(Window window, long offset, int count) {
    window.size = 0;
    if (window.bytes.length < count) window.bytes = new byte[count];
    try {
      stream.readFully(offset, window.bytes, 0, count);
    } catch (EOFException e) {
      throw new UncheckedIOException("cannot read " + name + ": it ends before byte "
          + (offset + count) + ", and had " + size + " bytes: do not write to it meanwhile", e);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + name + ": " + e.getMessage(), e);
    }
    window.start = offset;
    window.size = count;
    window.used = ++uses;
  }

  @Override
  public void close() {
    try {
      stream.close();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot close " + name + ": " + e.getMessage(), e);
    }
  }
}
