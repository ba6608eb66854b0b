// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Paths
import java.util.Locale

import caffe.Caffe.Datum
import cafetiere.core.lmdb.LmdbWriter
import cafetiere.protobuf.ByteString
import libs.ByteImage

/** Writes images into Caffe's databases: a Datum of three planes for each, red first.
  *
  * @param dbType "lmdb" or "leveldb"
  */
class CreateDB(dbType: String) extends java.io.Serializable {
  if (!Seq("lmdb", "leveldb").contains(dbType))
    throw new IllegalArgumentException(s"a database of type $dbType cannot be written; take lmdb or leveldb")

  /** Writes images, whose keys are their numbers. It is committed every 1000.
    *
    * @param dbName a local folder that is made and must not be there
    */
  def makeDBFromPartition(
      dataIt: Iterator[(ByteImage, Int)],
      dbName: String,
      height: Int,
      width: Int): Unit = write(dataIt.grouped(1000), dbName, height, width)

  /** The same of minibatches, each of which is committed. */
  def makeDBFromMinibatchPartition(
      minibatchIt: Iterator[(Array[ByteImage], Array[Int])],
      dbName: String,
      height: Int,
      width: Int): Unit =
    write(
      minibatchIt.map { case (images, labels) => images.toSeq.zip(labels.toSeq) },
      dbName, height, width)

  private def write(
      commits: Iterator[Seq[(ByteImage, Int)]],
      dbName: String,
      height: Int,
      width: Int): Unit = {
    val path = Paths.get(dbName)
    val writer = if (dbType == "lmdb") LmdbWriter.ofLmdb(path) else LmdbWriter.ofLevelDb(path)
    try {
      var number = 0
      for (records <- commits) {
        for ((image, label) <- records) {
          writer.put(
            "%08d".formatLocal(Locale.ROOT, number).getBytes(UTF_8),
            datum(image, label, height, width))
          number += 1
        }
        writer.commit()
      }
    } finally writer.close()
  }

  private def datum(image: ByteImage, label: Int, height: Int, width: Int): Array[Byte] = {
    if (image.getHeight() != height || image.getWidth() != width)
      throw new IllegalArgumentException(
        s"an image of ${image.getHeight()} x ${image.getWidth()} in a database of $height x $width")
    val planes = new Array[Byte](3 * height * width)
    image.copyToBuffer(planes)
    Datum.newBuilder().setChannels(3).setHeight(height).setWidth(width).setLabel(label)
      .setData(ByteString.copyFrom(planes)).build().toByteArray
  }
}
