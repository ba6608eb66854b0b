// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.Syncable;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.spark.SparkContext;

/**
 * Local files with the manners of an object store. An object appears as its stream is closed, also
 * where the writer was interrupted; nothing can be flushed or appended to; a rename copies object after
 * object and then deletes; a folder has no time. Of this process's requests a test has one answered with
 * 503, or that one and all that follow, as if the process had ended there, or those that it chooses; one of
 * an executor's, by a file.
 */
public final class StoreFiles extends SchemeFiles {
  private static final String SCHEME = "store";
  private static final String FAULT = "fs.store.fault";
  private static final AtomicInteger REQUESTS = new AtomicInteger();
  private static volatile int failing;
  private static volatile boolean isLast;
  private static volatile Predicate<String> refused = request -> false;

  /** Where it is found by its scheme. */
  public static Configuration configuration() {
    return configure(new Configuration());
  }

  /** Has driver and executors find the scheme; an executor's rename fails for each file {@code fault}. */
  public static void configure(SparkContext sc, java.nio.file.Path fault) {
    configure(sc.hadoopConfiguration()).set(FAULT, fault.toString());
  }

  private static Configuration configure(Configuration conf) {
    conf.set("fs." + SCHEME + ".impl", StoreFiles.class.getName());
    conf.setBoolean("fs." + SCHEME + ".impl.disable.cache", true);
    return conf;
  }

  /** The path of a local file or folder under the scheme. */
  public static String path(java.nio.file.Path file) {
    return SCHEME + "://" + file;
  }

  /** From now on this process's request of that number fails, counted from 1; and all after it. */
  public static void failAt(int request, boolean andAllAfter) {
    REQUESTS.set(0);
    failing = request;
    isLast = andAllAfter;
  }

  /** From now on those of this process's deletes and writes fail that are refused: "delete /folder/file". */
  public static void refuse(Predicate<String> requests) {
    refused = requests;
  }

  /** This process's requests since {@link #failAt}. */
  public static int requests() {
    return REQUESTS.get();
  }

  /** No request fails any more; whether one has since {@link #failAt}. */
  public static boolean recover() {
    boolean failed = failing > 0 && REQUESTS.get() >= failing;
    failing = 0;
    refused = request -> false;
    return failed;
  }

  public StoreFiles() {
    super(SCHEME);
  }

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer,
      short replication, long block, Progressable progress) throws IOException {
    request("create", path);
    return new FSDataOutputStream(new Upload(path), null);
  }

  /** Local files have a way of their own past the one above. */
  @Override
  public FSDataOutputStream create(Path path, boolean overwrite, int buffer, short replication, long block,
      Progressable progress) throws IOException {
    return create(path, null, overwrite, buffer, replication, block, progress);
  }

  @Override
  public FSDataOutputStream append(Path path, int buffer, Progressable progress) {
    throw new UnsupportedOperationException("append is not supported");
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    request();
    return new FSDataInputStream(new Download(super.open(path, buffer)));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    request();
    FileStatus status = super.getFileStatus(path);
    return new FileStatus(status.getLen(), status.isDirectory(), 1, status.getBlockSize(),
        status.isFile() ? status.getModificationTime() : 0, status.getPath());
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    request();
    return super.listStatus(path);
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    java.nio.file.Path file = local(path);
    if (!Files.exists(file)) return false;
    if (Files.isDirectory(file)) {
      for (FileStatus entry : super.listStatus(path)) delete(entry.getPath(), true);
    }
    request("delete", path);
    Files.delete(file);
    return true;
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    String fault = getConf().get(FAULT, "");
    if (!fault.isEmpty() && Files.deleteIfExists(java.nio.file.Path.of(fault))) throw busy();
    if (!Files.exists(local(from))) throw new FileNotFoundException(from.toString());
    if (Files.exists(local(to))) return false;
    copy(from, to);
    return delete(from, true);
  }

  private void copy(Path from, Path to) throws IOException {
    if (Files.isDirectory(local(from))) {
      for (FileStatus entry : super.listStatus(from)) {
        copy(entry.getPath(), new Path(to, entry.getPath().getName()));
      }
      return;
    }
    request();
    put(to, Files.readAllBytes(local(from)));
  }

  private void put(Path path, byte[] bytes) throws IOException {
    Files.createDirectories(local(path).getParent());
    Files.write(local(path), bytes);
  }

  private java.nio.file.Path local(Path path) {
    return pathToFile(path).toPath();
  }

  private static void request(String what, Path path) throws IOException {
    if (refused.test(what + " " + path.toUri().getPath())) throw busy();
    request();
  }

  private static void request() throws IOException {
    int number = REQUESTS.incrementAndGet();
    if (failing > 0 && (number == failing || isLast && number > failing)) throw busy();
  }

  private static IOException busy() {
    return new IOException("503: please reduce your request rate");
  }

  /** Each read is a request. */
  private static final class Download extends Input {
    Download(FSDataInputStream in) {
      super(in);
    }

    @Override
    public int read() throws IOException {
      request();
      return in.read();
    }

    @Override
    public int read(byte[] out, int offset, int length) throws IOException {
      request();
      return in.read(out, offset, length);
    }
  }

  /** What is written, until it is closed. */
  private final class Upload extends OutputStream implements Syncable {
    private final Path path;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private boolean isClosed;

    Upload(Path path) {
      this.path = path;
    }

    @Override
    public void write(int value) {
      bytes.write(value);
    }

    @Override
    public void write(byte[] from, int offset, int length) {
      bytes.write(from, offset, length);
    }

    @Override
    public void hflush() {
      throw new UnsupportedOperationException("hflush is not supported");
    }

    @Override
    public void hsync() {
      throw new UnsupportedOperationException("hsync is not supported");
    }

    @Override
    public void close() throws IOException {
      if (isClosed) return;
      isClosed = true;
      request();
      put(path, bytes.toByteArray());
    }
  }
}
