// SPDX-License-Identifier: Apache-2.0
package misc

import java.io.{BufferedInputStream, BufferedOutputStream, InputStream, OutputStream}
import java.nio.file.{Files, Path, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path => HadoopPath}

/** Where files are: a path with a scheme is Hadoop's, any other is local. */
private[misc] object Places {

  /** A file's bytes, and how many there are. */
  def open(path: String): (InputStream, Long) =
    if (isHadoops(path)) {
      val (files, file) = hadoops(path)
      (files.open(file), files.getFileStatus(file).getLen)
    } else {
      val file = Paths.get(path)
      (new BufferedInputStream(Files.newInputStream(file)), Files.size(file))
    }

  /** A new file, or one in place of another. */
  def create(path: String): OutputStream =
    if (isHadoops(path)) {
      val (files, file) = hadoops(path)
      files.create(file, true)
    } else new BufferedOutputStream(Files.newOutputStream(Paths.get(path)))

  /** Gives a reader of local files a file, or a copy of it. */
  def reading[T](path: String)(use: String => T): T =
    if (isHadoops(path)) withTemporary(path) { (local, files, file) =>
      files.copyToLocalFile(false, file, new HadoopPath(local.toUri), true)
      use(local.toString)
    }
    else use(path)

  /** Has a writer of local files write a file, or one that is copied there. */
  def writing(path: String)(use: String => Unit): Unit =
    if (isHadoops(path)) withTemporary(path) { (local, files, file) =>
      use(local.toString)
      files.copyFromLocalFile(true, true, new HadoopPath(local.toUri), file)
    }
    else use(path)

  private def isHadoops(path: String): Boolean = path.matches("[A-Za-z][A-Za-z0-9+.-]+:.*")

  private def hadoops(path: String): (FileSystem, HadoopPath) = {
    val file = new HadoopPath(path)
    (file.getFileSystem(new Configuration()), file)
  }

  /** A local path of the same name in a folder of its own. */
  private def withTemporary[T](path: String)(use: (Path, FileSystem, HadoopPath) => T): T = {
    val (files, file) = hadoops(path)
    val folder = Files.createTempDirectory("cafetiere")
    val local = folder.resolve(file.getName)
    try use(local, files, file)
    finally {
      Files.deleteIfExists(local)
      Files.delete(folder)
    }
  }
}
