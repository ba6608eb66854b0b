// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions.{col, explode, lit, struct, udf}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, SQLContext}

/** Captions of images as words and as numbers. */
object Conversions {
  private val Token = "\\w+|\\W+".r
  private val image = StructType(Seq(
    StructField("id", LongType),
    StructField("height", IntegerType),
    StructField("width", IntegerType),
    StructField("file_name", StringType),
    StructField("flickr_url", StringType),
    StructField("coco_url", StringType)))
  private val annotation = StructType(
    Seq(StructField("id", LongType), StructField("image_id", LongType), StructField("caption", StringType)))
  private val coco = StructType(
    Seq(StructField("images", ArrayType(image)), StructField("annotations", ArrayType(annotation))))

  /** The words of a sentence in lower case, and what stands between them; without the full stop at its end. */
  def sentence2Words(sentence: String): Array[String] = {
    val words = Token.findAllIn(sentence.toLowerCase(java.util.Locale.ROOT)).map(_.trim).filter(_.nonEmpty).toArray
    if (words.lastOption.contains(".")) words.dropRight(1) else words
  }

  /** The images of a JSON file in COCO's form, by their ids; a row for each caption, or for each image where there
    * are no captions.
    *
    * @return id, height, width, file, url, and caption where there are captions
    */
  def Coco2ImageCaptionFile(sqlContext: SQLContext, src: String, clusterSize: Int): DataFrame = {
    val file = sqlContext.read.schema(coco).option("multiLine", true).option("mode", "FAILFAST").json(src)
    val images = file.select(explode(col("images")).as("i"))
    val captions = file.select(explode(col("annotations")).as("a")).filter(col("a.caption").isNotNull)
    def columns(url: String) = Seq(
      col("i.id").as("id"), col("i.height").as("height"), col("i.width").as("width"),
      col("i.file_name").as("file"), col(url).as("url"))
    val (rows, order) =
      if (captions.isEmpty) (images.select(columns("i.coco_url"): _*), Seq(col("id")))
      else {
        val captioned = images.join(captions, col("i.id") === col("a.image_id"))
        val all = columns("i.flickr_url") ++ Seq(col("a.caption").as("caption"), col("a.id").as("annotation"))
        (captioned.select(all: _*), Seq(col("id"), col("annotation")))
      }
    rows.repartitionByRange(math.max(1, clusterSize), order: _*).sortWithinPartitions(order: _*)
      .drop("annotation")
  }

  /** Images as a net of CoSData reads them.
    *
    * @param imageRootFolder the folder of the files that column `file` names
    * @return id, a text; data, which holds image, height and width; label, which is 0
    */
  def Image2Embedding(imageRootFolder: String, imageFileDF: DataFrame): DataFrame =
    imageFileDF.select(embedded(imageRootFolder, imageFileDF): _*)

  /** Images with their captions as numbers, each `captionLength` long: `input_sentence` begins with 0 and goes on
    * with the words, `target_sentence` has the words and then 0, and `cont_sentence` is 0 at the begin and 1 at
    * each word. What is behind the end is -1; words that find no room are left out.
    */
  def ImageCaption2Embedding(
      imageRootFolder: String,
      imageCaptionDF: DataFrame,
      vocab: Vocab,
      captionLength: Int): DataFrame = {
    if (captionLength < 1) throw new IllegalArgumentException(s"-captionLength $captionLength: at least 1 is needed")
    val words = imageCaptionDF.sparkSession.sparkContext.broadcast(vocab.word2indexMap())
    def sentence(of: Seq[Int] => Seq[Int]): UserDefinedFunction = udf { (caption: String) =>
      val ids = sentence2Words(caption).take(captionLength - 1)
        .map(words.value.getOrElse(_, Vocab.UNKNOWN_ID)).toSeq
      of(ids).padTo(captionLength, Vocab.NO_TOKEN)
    }
    val input = sentence(ids => Vocab.START_END_ID +: ids)
    val cont = sentence(ids => 0 +: ids.map(_ => 1))
    val target = sentence(ids => ids :+ Vocab.START_END_ID)
    imageCaptionDF.select(embedded(imageRootFolder, imageCaptionDF) ++ Seq(
      input(col("caption")).as("input_sentence"),
      cont(col("caption")).as("cont_sentence"),
      target(col("caption")).as("target_sentence")): _*)
  }

  /** A further column with the sentences whose numbers are in `embeddingColumn`, from their begin to their end. */
  def Embedding2Caption(
      embeddingDF: DataFrame,
      vocab: Vocab,
      embeddingColumn: String,
      captionColumn: String): DataFrame = {
    val words = embeddingDF.sparkSession.sparkContext.broadcast(vocab.index2wordMap())
    val sentence = udf { (ids: scala.collection.Seq[Int]) =>
      ids.iterator.dropWhile(_ == Vocab.START_END_ID).takeWhile(_ != Vocab.START_END_ID).filter(_ != Vocab.NO_TOKEN)
        .map(id => words.value.getOrElse(id, words.value(Vocab.UNKNOWN_ID))).mkString(" ")
    }
    embeddingDF.withColumn(captionColumn, sentence(col(embeddingColumn)))
  }

  private def embedded(root: String, df: DataFrame) = {
    val read = ImageFiles.reader(df.sparkSession, root)
    val bytes = udf((file: String) => read(file))
    Seq(
      col("id").cast(StringType).as("id"),
      struct(bytes(col("file")).as("image"), col("height"), col("width")).as("data"),
      lit(0).as("label"))
  }
}
