// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;

/**
 * Local files under another scheme, which count what tasks read. When a task closes a file, a file in
 * the folder {@code NAME-reads} beside it tells its partition and the bytes.
 */
public final class CountingFiles extends SchemeFiles {
  private static final String SCHEME = "count";
  private static final String READS = "-reads";

  /** Has driver and executors find the scheme; the path of a local file or folder under it. */
  public static String path(SparkContext sc, java.nio.file.Path file) {
    sc.hadoopConfiguration().set("fs." + SCHEME + ".impl", CountingFiles.class.getName());
    return SCHEME + "://" + file;
  }

  public CountingFiles() {
    super(SCHEME);
  }

  /** The bytes read of a file, by partition; and forgets them. */
  public static Map<Integer, Long> takeReads(java.nio.file.Path file) throws IOException {
    Map<Integer, Long> reads = new TreeMap<>();
    java.nio.file.Path folder = reads(file);
    if (!Files.exists(folder)) return reads;
    try (Stream<java.nio.file.Path> entries = Files.list(folder)) {
      for (java.nio.file.Path entry : entries.toList()) {
        String[] words = Files.readString(entry).split(" ");
        reads.merge(Integer.parseInt(words[0]), Long.parseLong(words[1]), Long::sum);
        Files.delete(entry);
      }
    }
    return reads;
  }

  private static java.nio.file.Path reads(java.nio.file.Path file) {
    return file.resolveSibling(file.getFileName() + READS);
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    return new FSDataInputStream(new Counted(super.open(path, buffer), pathToFile(path).toPath()));
  }

  private static final class Counted extends Input {
    private final java.nio.file.Path file;
    private long bytes;

    Counted(FSDataInputStream in, java.nio.file.Path file) {
      super(in);
      this.file = file;
    }

    @Override
    public int read(long position, byte[] out, int offset, int length) throws IOException {
      int count = in.read(position, out, offset, length);
      if (count > 0) bytes += count;
      return count;
    }

    @Override
    public int read() throws IOException {
      bytes++;
      return in.read();
    }

    @Override
    public void close() throws IOException {
      super.close();
      TaskContext task = TaskContext.get();
      if (task == null) return;
      java.nio.file.Path folder = Files.createDirectories(reads(file));
      String text = task.partitionId() + " " + bytes;
      Files.writeString(folder.resolve(UUID.randomUUID().toString()), text);
    }
  }
}
