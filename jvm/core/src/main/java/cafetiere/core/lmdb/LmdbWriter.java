// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.lmdb;

import static java.nio.charset.StandardCharsets.UTF_8;

import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.file.Path;

/** A new database, an LMDB or a LevelDB, as Caffe reads it. */
public final class LmdbWriter extends Handle {
  private LmdbWriter(long address) {
    super(address, NativeLmdb::writerClose);
  }

  /** An LMDB, as liblmdb writes it. Makes the folder, which must not be there. */
  public static LmdbWriter ofLmdb(Path folder) {
    NativeLibrary.load();
    return new LmdbWriter(NativeLmdb.create(bytes(folder)));
  }

  /** A LevelDB, likewise. */
  public static LmdbWriter ofLevelDb(Path folder) {
    NativeLibrary.load();
    return new LmdbWriter(NativeLmdb.createLevelDb(bytes(folder)));
  }

  /** Keeps a record for the next commit. Keys have 1 to 511 bytes; of equal ones the last stays. */
  public void put(byte[] key, byte[] value) {
    run(writer -> NativeLmdb.put(writer, key, value));
  }

  /** Writes what was put since the last commit; what is put after the last one is lost. */
  public void commit() {
    run(NativeLmdb::commit);
  }

  private static byte[] bytes(Path folder) {
    return folder.toString().getBytes(UTF_8);
  }
}
