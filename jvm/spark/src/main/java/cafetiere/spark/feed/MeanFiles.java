// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.spark.util.HadoopFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkFiles;

/**
 * Takes the mean images that a net names with transform_param { mean_file } to where the net runs.
 * The driver reads them, by Hadoop path or from its own disk, and adds them to Spark's files.
 */
public final class MeanFiles {
  /** The field, a comment or another string. */
  private static final Pattern FIELD = Pattern.compile("(\\bmean_?file\\s*:\\s*)"
      + "(\"[^\"\\n]*\"|'[^'\\n]*')|#[^\\n]*|\"[^\"\\n]*\"|'[^'\\n]*'");
  private static final Pattern SHIPPED =
      Pattern.compile("(?<![\\w./-])cafetiere-mean-[0-9a-f-]{36}\\.binaryproto");
  private static final Path FOLDER = Path.of("/tmp");
  private static final Map<SparkContext, Set<String>> ADDED = new WeakHashMap<>();

  private MeanFiles() {}

  /** On the driver: a solver or net with names of Spark's files in place of paths. */
  public static String shipped(String text, Supplier<SparkContext> sc) {
    return FIELD.matcher(text).replaceAll(field -> {
      if (field.group(1) == null) return Matcher.quoteReplacement(field.group());
      String path = field.group(2).substring(1, field.group(2).length() - 1);
      boolean isDone = path.isEmpty() || SHIPPED.matcher(path).matches();
      String name = isDone ? path : add(path, sc.get());
      return Matcher.quoteReplacement(field.group(1) + '"' + name + '"');
    });
  }

  /** In a task, or on the driver: the same, or options with it inside, with local paths. */
  public static String local(String text) {
    return SHIPPED.matcher(text)
        .replaceAll(name -> Matcher.quoteReplacement(placed(name.group()).toString()));
  }

  /**
   * A caffemodel holds the path, so that it must be the same on all executors. The file stays:
   * another executor of the machine may be about to read it.
   */
  private static Path placed(String name) {
    Path target = FOLDER.resolve(name);
    try {
      byte[] bytes = Files.readAllBytes(Path.of(SparkFiles.get(name)));
      if (Files.isReadable(target) && Arrays.equals(Files.readAllBytes(target), bytes)) {
        return target;
      }
      Path unfinished = Files.createTempFile(FOLDER, name, "");
      Files.write(unfinished, bytes);
      Files.setPosixFilePermissions(unfinished, PosixFilePermissions.fromString("rw-r--r--"));
      return Files.move(unfinished, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write the mean_file of the net to " + target, e);
    }
  }

  private static String add(String path, SparkContext sc) {
    byte[] bytes = read(path, sc);
    String name = "cafetiere-mean-" + UUID.nameUUIDFromBytes(bytes) + ".binaryproto";
    synchronized (ADDED) {
      if (!ADDED.computeIfAbsent(sc, key -> ConcurrentHashMap.newKeySet()).add(name)) return name;
      try {
        Path folder = Files.createTempDirectory("cafetiere-mean");
        Path file = Files.write(folder.resolve(name), bytes);
        folder.toFile().deleteOnExit();
        file.toFile().deleteOnExit(); // executors fetch it from here as long as they start
        sc.addFile(file.toUri().toString());
      } catch (IOException e) {
        throw new UncheckedIOException("cannot pass on the mean_file " + path + ": " + e, e);
      }
    }
    return name;
  }

  /** A file on the driver's disk goes first, as one that spark-submit put there. */
  private static byte[] read(String path, SparkContext sc) {
    try {
      if (Files.isRegularFile(Path.of(path))) return Files.readAllBytes(Path.of(path));
    } catch (InvalidPathException e) {
      // Then it is a URI.
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the mean_file " + path + ": " + e, e);
    }
    return HadoopFiles.read(path, sc.hadoopConfiguration());
  }
}
