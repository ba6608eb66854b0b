// SPDX-License-Identifier: Apache-2.0
package loaders.v1

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** The files in tars as they are, as SparkNet's first version has them for `ScaleAndConvert`.
  *
  * @param bucket a folder of any of Hadoop's file systems, such as s3a://bucket
  */
class ImageNetLoader(bucket: String) extends java.io.Serializable {

  /** The files and their classes.
    *
    * @param dataPath what the tars' paths in the folder begin with
    * @param labelsPath a text there with lines of a file's name and its class; each file needs one
    * @param numParts fewer partitions than there are tars
    */
  def apply(
      sc: SparkContext,
      dataPath: String,
      labelsPath: String,
      numParts: Option[Int] = None): RDD[(Array[Byte], Int)] =
    loaders.ImageNetLoader.files(s"$bucket/$dataPath*", s"$bucket/$labelsPath", numParts)
}
