// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.lmdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.file.Path;

/** A new LMDB database, as liblmdb writes it and Caffe reads it. */
public final class LmdbWriter extends Handle {
  /** Makes the folder, which must not be there. */
  public LmdbWriter(Path folder) {
    super(create(folder), NativeLmdb::writerClose);
  }

  /** Keeps a record for the next commit. Keys have 1 to 511 bytes; of equal ones the last stays. */
  public void put(byte[] key, byte[] value) {
    run(writer -> NativeLmdb.put(writer, key, value));
  }

  /** Writes what was put since the last commit; what is put after the last one is lost. */
  public void commit() {
    run(NativeLmdb::commit);
  }

  private static long create(Path folder) {
    NativeLibrary.load();
    return NativeLmdb.create(folder.toString().getBytes(UTF_8));
  }
}
