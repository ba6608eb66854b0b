// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

/** CaffeOnSpark's flags, each with one dash; words that belong to none are dropped.
  *
  * @param others flags that are not CaffeOnSpark's, with their values
  */
private[caffe] class CommandLine private (values: Map[String, String], val others: Seq[String]) {
  private val log = LoggerFactory.getLogger(classOf[CommandLine])

  def has(flag: String): Boolean = values.contains(flag)

  def apply(flag: String, otherwise: String): String = values.getOrElse(flag, otherwise)

  def number(flag: String, otherwise: Int): Int = values.get(flag) match {
    case None => otherwise
    case Some(text) if text.matches("-?\\d{1,9}") => text.toInt
    case Some(text) => throw new IllegalArgumentException(s"-$flag $text: a whole number is needed")
  }

  /** The same, of at least 1. */
  def count(flag: String, otherwise: Int): Int = {
    val size = number(flag, otherwise)
    if (size < 1) throw new IllegalArgumentException(s"-$flag $size: it must be at least 1")
    size
  }

  /** As `Config.connection` has it: any word but ethernet means InfiniBand, no word TCP. */
  def connection: Int = values.get("connection") match {
    case Some(word) => if (word.equalsIgnoreCase("ethernet")) Config.Socket else Config.Rdma
    case None =>
      log.info("no -connection: executors talk by TCP, where CaffeOnSpark took InfiniBand;" +
        " -connection infiniband asks for it")
      Config.Socket
  }

  /** -clusterSize, or the executors that Spark's settings promise. */
  def clusterSize(sc: SparkContext): Int = {
    val settings = Option(sc).map(_.getConf)
    def setting(name: String) = settings.map(_.getInt(name, 1)).getOrElse(1)
    val isDynamic = settings.exists(_.getBoolean("spark.dynamicAllocation.enabled", false))
    val isYarn = Option(sc).exists(_.master.startsWith("yarn"))
    val promised =
      if (isDynamic) setting("spark.dynamicAllocation.minExecutors")
      else if (isYarn) setting("spark.executor.instances")
      else 1
    val size = count("clusterSize", promised)
    if (size != promised && (isDynamic || isYarn))
      log.info(s"-clusterSize $size is followed, where CaffeOnSpark took the $promised of Spark's settings")
    size
  }
}

private[caffe] object CommandLine {
  private val log = LoggerFactory.getLogger(classOf[CommandLine])
  private val switches = Set("train", "test", "persistent", "resize")
  private val valued = Set("conf", "features", "label", "model", "output", "outputFormat", "devices",
    "snapshot", "weights", "connection", "clusterSize", "lmdb_partitions", "imageRoot", "labelFile",
    "captionFile", "captionLength", "vocabSize", "imageCaptionDFDir", "vocabDir", "embeddingDFDir")

  def parse(args: Array[String]): CommandLine = {
    val values = mutable.Map[String, String]()
    val others = Seq.newBuilder[String]
    var rest = args.toList
    def isFlag(word: String) = word.length > 1 && word.startsWith("-") && !word.matches("-\\d+")
    while (rest.nonEmpty) {
      val name = rest.head.stripPrefix("-").stripPrefix("-")
      rest match {
        case word :: more if !isFlag(word) =>
          log.warn(s"'$word' belongs to no flag and is dropped")
          rest = more
        case _ :: more if switches(name) =>
          values(name) = "true"
          rest = more
        case flag :: more if valued(name) =>
          if (more.isEmpty) throw new IllegalArgumentException(s"$flag needs a value after it")
          if (isFlag(more.head)) throw new IllegalArgumentException(
            s"$flag needs a value after it, and the flag ${more.head} follows")
          values(name) = more.head
          rest = more.tail
        case flag :: value :: more if !isFlag(value) =>
          others ++= Seq(flag, value)
          rest = more
        case flag :: more =>
          others += flag
          rest = more
        case Nil =>
      }
    }
    new CommandLine(values.toMap, others.result())
  }
}
