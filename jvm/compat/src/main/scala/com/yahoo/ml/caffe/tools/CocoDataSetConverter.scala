// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Makes what a net for captions reads of a data set in COCO's form: `-captionFile` is its JSON file and
  * `-imageRoot` the folder of the images. The folders that are written are `-output` with `-imageCaptionDFDir`,
  * `-vocabDir` or `-embeddingDFDir` behind it, as they stand:
  *
  *   - the captions, as JSON;
  *   - the words, `-vocabSize` of them or all; a folder that is there is read instead;
  *   - images and captions of `-captionLength` numbers, in the form of `-outputFormat`; images alone where the
  *     file has no captions.
  */
object CocoDataSetConverter extends Tool {
  override def run(spark: SparkSession, conf: Config): Unit = {
    val root = needed("imageRoot", conf.imageRoot)
    val output = needed("output", conf.outputPath)
    val captions = output + needed("imageCaptionDFDir", conf.imageCaptionDFDir)
    val embeddings = output + needed("embeddingDFDir", conf.embeddingDFDir)
    val parts = math.max(spark.sparkContext.defaultParallelism, conf.clusterSize)
    Conversions.Coco2ImageCaptionFile(spark.sqlContext, needed("captionFile", conf.captionFile), parts)
      .write.json(captions)
    val table = spark.read.json(captions)
    val rows =
      if (!table.columns.contains("caption")) Conversions.Image2Embedding(root, table)
      else {
        val vocab = words(table, output + needed("vocabDir", conf.vocabDir), conf.vocabSize)
        Conversions.ImageCaption2Embedding(root, table, vocab, conf.captionLength)
      }
    rows.write.format(conf.outputFormat).save(embeddings)
  }

  /** The vocabulary that is there, or else one that is made of a table and saved. */
  private def words(table: DataFrame, path: String, size: Int): Vocab = {
    val spark = table.sparkSession
    val vocab = new Vocab(spark.sqlContext)
    val folder = new Path(path)
    if (folder.getFileSystem(spark.sparkContext.hadoopConfiguration).exists(folder)) vocab.load(path)
    else {
      vocab.genFromData(table, "caption", size)
      vocab.save(path)
    }
    vocab
  }
}
