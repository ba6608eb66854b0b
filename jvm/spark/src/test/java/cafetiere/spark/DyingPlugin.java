// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Ends an executor when one of its tasks is over and Spark has not been told: while there is a file
 * {@code die-N} in the test's folder and a stored result of a training, once for each such file.
 */
public final class DyingPlugin implements SparkPlugin {
  /** Spark's setting that names the folder. */
  static final String FOLDER = "spark.cafetiere.test.folder";

  static final String DIE = "die-";

  @Override
  public DriverPlugin driverPlugin() {
    return null;
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private Path folder;

      @Override
      public void init(PluginContext context, Map<String, String> extra) {
        folder = Path.of(context.conf().get(FOLDER));
      }

      @Override
      public void onTaskSucceeded() {
        if (hasResult(folder) && takesOne(folder)) Runtime.getRuntime().halt(137);
      }
    };
  }

  /** How many executors are still to end so. */
  static long left(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> file.getFileName().toString().startsWith(DIE)).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean hasResult(Path folder) {
    try (Stream<Path> found = Files.find(folder, 5, (path, attributes) ->
        path.getFileName().toString().startsWith("step-")
            && path.getParent().getFileName().toString().equals("result"))) {
      return found.findAny().isPresent();
    } catch (IOException | UncheckedIOException e) {
      return false;  // a folder that went while it was looked into
    }
  }

  private static boolean takesOne(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        boolean asks = file.getFileName().toString().startsWith(DIE);
        if (asks && Files.deleteIfExists(file)) return true;
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return false;
  }
}
