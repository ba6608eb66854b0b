// SPDX-License-Identifier: Apache-2.0
package loaders

import java.io.{DataInputStream, IOException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

/** Files of rows of one size, through Hadoop's file systems. */
private object RowFiles {

  /** The rows of a file, without the bytes before them. */
  def records(folder: String, name: String, skip: Int, size: Int): Seq[Array[Byte]] =
    open(folder, name) { (stream, length) =>
      val bytes = length - skip
      if (bytes < 0 || bytes % size != 0)
        throw fault(folder, name, s"has $length bytes, and its rows have $size: it is cut short")
      stream.readFully(new Array[Byte](skip))
      List.fill((bytes / size).toInt) {
        val row = new Array[Byte](size)
        stream.readFully(row)
        row
      }
    }

  /** The first bytes of a file. */
  def head(folder: String, name: String, count: Int): Array[Byte] = open(folder, name) { (stream, length) =>
    if (length < count) throw fault(folder, name, s"has $length bytes: it is cut short")
    val bytes = new Array[Byte](count)
    stream.readFully(bytes)
    bytes
  }

  def fault(folder: String, name: String, what: String): IOException =
    new IOException(s"${new Path(folder, name)} $what")

  private def open[T](folder: String, name: String)(read: (DataInputStream, Long) => T): T = {
    val path = new Path(folder, name)
    val conf = new Configuration()
    val files = if (path.toUri.getScheme == null) FileSystem.getLocal(conf) else path.getFileSystem(conf)
    val length = files.getFileStatus(path).getLen
    val stream = files.open(path)
    try read(stream, length)
    finally stream.close()
  }
}
