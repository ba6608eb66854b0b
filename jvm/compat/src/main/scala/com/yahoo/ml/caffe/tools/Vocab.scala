// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import org.apache.spark.sql.{DataFrame, SQLContext}

/** The words of captions and their numbers: 0 begins and ends a sentence, 1 is any word that is not kept, and
  * those that are kept follow from 2 on. A net that reads them has two more classes than there are words.
  */
class Vocab(@transient private val sqlContext: SQLContext) extends Serializable {
  private var words = Seq[String]()

  /** Takes the words of a column of sentences: the most frequent ones first, and of equally frequent ones that
    * first which comes first in the alphabet.
    *
    * @param vocabSize how many are kept; -1 for all
    */
  def genFromData(df: DataFrame, column: String, vocabSize: Int = -1): Unit = {
    val counts = df.select(column).rdd.filter(!_.isNullAt(0))
      .flatMap(row => Conversions.sentence2Words(row.getString(0))).map((_, 1L)).reduceByKey(_ + _)
    val ordered = counts.collect().sortBy { case (word, count) => (-count, word) }.map(_._1).toSeq
    words = if (vocabSize < 0) ordered else ordered.take(vocabSize)
  }

  /** Writes a text file into a new folder: a line UNK, and one for each word. */
  def save(vocabFilePath: String): Unit =
    sqlContext.sparkContext.parallelize(Vocab.UNKNOWN_TOKEN +: words, 1).saveAsTextFile(vocabFilePath)

  /** Reads what `save` wrote.
    *
    * @throws IllegalArgumentException if the first line is not UNK
    */
  def load(vocabFilePath: String): Unit = {
    val lines = sqlContext.sparkContext.textFile(vocabFilePath).collect().toSeq
    if (!lines.headOption.contains(Vocab.UNKNOWN_TOKEN))
      throw new IllegalArgumentException(
        s"$vocabFilePath is no vocabulary: its first line is not ${Vocab.UNKNOWN_TOKEN}")
    words = lines.tail
  }

  /** The number of each word. */
  def word2indexMap(): Map[String, Int] =
    (Vocab.UNKNOWN_TOKEN +: words).zipWithIndex.map { case (word, i) => word -> (i + Vocab.UNKNOWN_ID) }.toMap

  /** The word of each number, with `<EOS>` for 0. */
  def index2wordMap(): Map[Int, String] =
    (Vocab.End +: Vocab.UNKNOWN_TOKEN +: words).zipWithIndex.map { case (word, i) => i -> word }.toMap
}

/** Numbers that are no words, and what stands for them, by CaffeOnSpark's names. */
object Vocab {
  /** The first line of a vocabulary's file: any word that is not kept. */
  val UNKNOWN_TOKEN = "UNK"

  /** Its number. */
  val UNKNOWN_ID = 1

  /** Begins and ends a sentence. */
  val START_END_ID = 0

  /** Words have larger numbers. */
  val VALID_TOKEN_INDEX = 1

  /** No word: behind the end of a sentence. */
  val NO_TOKEN: Int = -1

  private val End = "<EOS>"
}
