// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A folder of this machine that is removed when it is closed. One whose process was killed is removed
 * by the next that is made beside it: its lock is free then, also for processes of other containers.
 */
public final class TaskFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TaskFolder.class);
  private static final String PREFIX = "cafetiere-task-";
  private static final String LOCK = ".lock";
  /**
   * Begins the system properties that name the folders of this process, for this class in other class
   * loaders, too: who closes any descriptor of a lock file releases the lock of the whole process.
   */
  private static final String OWN = "cafetiere.task-folder:";

  private final Path folder;
  private final String own;
  private final FileChannel lock;

  /** A new folder in {@code parent}. */
  public TaskFolder(Path parent) throws IOException {
    sweep(parent);
    Path made = Files.createTempDirectory(parent, "cafetiere-new-");
    folder = parent.resolve(PREFIX + made.getFileName());
    own = own(parent, folder);
    Path file = made.resolve(LOCK);
    FileChannel channel = null;
    try {
      channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
      lock(channel, file);
      System.setProperty(own, "");
      Files.move(made, folder);  // no sweep sees it before it has its lock
    } catch (IOException | RuntimeException e) {
      System.clearProperty(own);
      if (channel != null) channel.close();
      remove(made);
      throw e;
    }
    lock = channel;
  }

  /** On a file system without locks, as NFS can be, there is no lock file, without which no sweep removes. */
  private static void lock(FileChannel channel, Path file) throws IOException {
    try {
      channel.lock();
    } catch (IOException e) {
      if (Thread.currentThread().isInterrupted()) throw e;
      LOG.info("{} cannot be locked ({}): its folder stays if its task is killed", file, e.getMessage());
      channel.close();  // first: NFS keeps an open file, and its folder with it
      Files.delete(file);
    }
  }

  public Path path() {
    return folder;
  }

  @Override
  public void close() {
    try (lock) {
      remove(folder);
    } catch (IOException e) {
      LOG.warn("{} could not be removed: {}", folder, e.getMessage());
    }
    System.clearProperty(own);
  }

  private static void sweep(Path parent) throws IOException {
    List<Path> found;
    try (Stream<Path> entries = Files.list(parent)) {
      found = entries.filter(path -> path.getFileName().toString().startsWith(PREFIX)).toList();
    }
    for (Path path : found) {
      if (System.getProperty(own(parent, path)) == null) removeIfLeft(path);
    }
  }

  /** The property of a folder, which is the same by whatever links its parent is reached. */
  private static String own(Path parent, Path folder) throws IOException {
    return OWN + parent.toRealPath().resolve(folder.getFileName());
  }

  /**
   * The parent may be one that others write to. A pipe in place of the lock is passed over, and one that
   * comes after the look does not hold this up: what is opened for reading, too, has its reader.
   */
  private static void removeIfLeft(Path folder) {
    Path file = folder.resolve(LOCK);
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      LOG.info("{} was not removed: it has no lock file", folder);
      return;
    }
    try (FileChannel channel = FileChannel.open(
        file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
      if (channel.tryLock() == null) return;
      LOG.info("Removing {}, which a task that was killed has left", folder);
      remove(folder);
    } catch (OverlappingFileLockException e) {
      LOG.debug("{} is locked by something else in this process", folder);
    } catch (IOException e) {
      LOG.info("{} was not removed: {}", folder, e.getMessage());
    }
  }

  /** The lock goes last, so that a removal that was broken off is finished by the next. */
  private static void remove(Path folder) throws IOException {
    try (Stream<Path> entries = Files.walk(folder)) {
      Comparator<Path> lockLast = Comparator.comparing(path -> path.endsWith(LOCK));
      for (Path path : entries.filter(path -> !path.equals(folder))
          .sorted(lockLast.thenComparing(Comparator.reverseOrder())).toList()) {
        Files.deleteIfExists(path);
      }
      Files.deleteIfExists(folder);
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }
}
