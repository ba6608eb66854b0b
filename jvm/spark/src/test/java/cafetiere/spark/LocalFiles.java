// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/** Files and folders of this machine that others remove meanwhile, as executors do when they end. */
public final class LocalFiles {
  private LocalFiles() {}

  /** Those wanted at most {@code depth} levels below a folder; what goes meanwhile is passed over. */
  public static List<Path> find(Path folder, int depth, Predicate<Path> wanted) {
    List<Path> found = new ArrayList<>();
    try {
      Files.walkFileTree(folder, Set.<FileVisitOption>of(), depth, new SimpleFileVisitor<>() {
        @Override
        public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes attributes) {
          return visitFile(path, attributes);
        }

        @Override
        public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) {
          if (wanted.test(path)) found.add(path);
          return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path path, IOException e) {
          return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path path, IOException e) {
          return FileVisitResult.CONTINUE;
        }
      });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return found;
  }
}
