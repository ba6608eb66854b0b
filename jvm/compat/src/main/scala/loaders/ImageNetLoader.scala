// SPDX-License-Identifier: Apache-2.0
package loaders

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import preprocessing.ScaleAndConvert

/** Images in tars, of which a task reads one.
  *
  * @param bucket a folder of any of Hadoop's file systems, such as s3a://bucket
  */
class ImageNetLoader(bucket: String) extends java.io.Serializable {

  /** The images, plane after plane, red first, and their classes; files that are no images are left out.
    *
    * @param dataPath what the tars' paths in the folder begin with
    * @param labelsPath a text there with lines of a file's name and its class; each file needs one
    * @param height to which images are resized, as to width
    * @param numParts fewer partitions than there are tars
    */
  def apply(
      sc: SparkContext,
      dataPath: String,
      labelsPath: String,
      height: Int = 256,
      width: Int = 256,
      numParts: Option[Int] = None): RDD[(Array[Byte], Int)] =
    ImageNetLoader.files(s"$bucket/$dataPath*", s"$bucket/$labelsPath", numParts).flatMap { case (file, label) =>
      ScaleAndConvert.decompressImageAndResize(file, height, width).map((_, label))
    }
}

private[loaders] object ImageNetLoader {
  /** The files in tars and their classes. */
  def files(tars: String, labels: String, parts: Option[Int]): RDD[(Array[Byte], Int)] = {
    val session = SparkSession.builder().getOrCreate()
    val table: DataFrame = session.read.format("tar").option("labels", labels).load(tars)
    val all = table.select("data", "label").rdd.map(row => (row.getAs[Array[Byte]](0), row.getInt(1)))
    parts.fold(all)(all.coalesce(_))
  }
}
