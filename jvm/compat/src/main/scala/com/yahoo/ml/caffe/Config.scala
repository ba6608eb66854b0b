// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import caffe.Caffe.{NetParameter, Phase, SolverParameter}
import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

/** What CaffeOnSpark's programs set up: the solver, its net, and what to do with them.
  *
  * Of a pair of properties of which one excludes the other, `isTest` and `isFeature`, the one set last wins.
  * The solver and its net are read once, when `protoFile` is set, and travel with the object: executors need no
  * files.
  */
class Config(@transient private val sc: SparkContext) extends Serializable {
  private var _protoFile = ""
  private var _isTest = false
  private var _isFeature = false
  private var _label = "label"
  private var _features = Array[String]()
  private var prototxt: Prototxt = _

  /** Whether to train. */
  var isTraining = false

  /** Where the model is, or is to be: a Hadoop path. */
  var modelPath = ""

  /** Where features and the results of tests go: a Hadoop path. */
  var outputPath = ""

  /** Shards of each executor; CaffeOnSpark's GPUs. 0 or 1: one. */
  var devices = 0

  /** Whether the rows to train on are kept on Spark's disks, so that their source is read once. */
  var isRddPersistent = false

  /** A solverstate to resume from, "" for none; needs `snapshotModelFile`. */
  var snapshotStateFile = ""

  /** A caffemodel to begin with, "" for none; several have commas between and are copied in order. */
  var snapshotModelFile = ""

  /** Whether images are made to fit the net. */
  var resize = false

  /** What connects the executors: 0 or 2 TCP, 1 UCX where all of them find it. */
  var connection: Int = Config.None

  /** Executors that train together; 0: as many as there are. */
  var clusterSize = 0

  /** Threads of an executor that make batches, beside those of the net. */
  var transform_thread_per_device = 1

  /** The format of features, by Spark's name of it. */
  var outputFormat = "json"

  /** Of the tools: a folder of images, or of a database. */
  var imageRoot = ""

  /** Of the tools: a list of files and labels. */
  var labelFile = ""

  /** Ranges of keys that an LMDB is read in; 0: as its size asks for. */
  var lmdb_partitions = 0

  /** Of the tools: captions in COCO's form. */
  var captionFile = ""

  /** Of the tools: words of a caption. */
  var captionLength = 20

  /** Of the tools: words that are kept, -1 for all. */
  var vocabSize: Int = -1

  /** Of the tools: the folder for captions, below `outputPath`. */
  var imageCaptionDFDir = ""

  /** Of the tools: the folder for words, below `outputPath`. */
  var vocabDir = ""

  /** Of the tools: the folder for captions as numbers, below `outputPath`. */
  var embeddingDFDir = ""

  private var more = Seq[String]()

  /** The configuration that a command line asks for: CaffeOnSpark's flags, and those of `Submit`.
    *
    * @throws IllegalArgumentException if a flag lacks its value, or a number is none or too small
    */
  def this(sc: SparkContext, args: Array[String]) = {
    this(sc)
    val flags = CommandLine.parse(args)
    isTraining = flags.has("train")
    isTest = flags.has("test")
    isFeature = flags.has("features")
    label = flags("label", "")
    modelPath = flags("model", "")
    outputPath = flags("output", "output")
    devices = flags.count("devices", 1)
    isRddPersistent = flags.has("persistent")
    snapshotModelFile = flags("weights", "")
    snapshotStateFile = flags("snapshot", "")
    resize = flags.has("resize")
    connection = flags.connection
    clusterSize = flags.clusterSize(sc)
    features = if (flags.has("features")) flags("features", "").split(",").map(_.trim) else null
    outputFormat = flags("outputFormat", "json")
    lmdb_partitions = flags.count("lmdb_partitions", clusterSize)
    imageRoot = flags("imageRoot", null)
    labelFile = flags("labelFile", null)
    captionFile = flags("captionFile", "")
    captionLength = flags.number("captionLength", 20)
    vocabSize = flags.number("vocabSize", -1)
    imageCaptionDFDir = flags("imageCaptionDFDir", "")
    vocabDir = flags("vocabDir", "")
    embeddingDFDir = flags("embeddingDFDir", "")
    more = flags.others
    protoFile = flags("conf", "")
  }

  /** The solver's file, on this machine or a Hadoop path. */
  def protoFile: String = _protoFile

  /** Reads the solver and the net that it names, from where it says or beside it.
    *
    * @throws IllegalArgumentException if a file cannot be read; names it, and the line of a fault
    */
  def protoFile_=(value: String): Unit = {
    _protoFile = value
    prototxt = if (value == null || value.isEmpty) null else Prototxt.read(value, sc)
  }

  /** Whether to test. */
  def isTest: Boolean = _isTest

  def isTest_=(value: Boolean): Unit = {
    if (value && _isFeature) Config.log.warn("both a test and features are asked for: the test is done")
    if (value) _isFeature = false
    _isTest = value
  }

  /** Whether to extract features. */
  def isFeature: Boolean = _isFeature

  def isFeature_=(value: Boolean): Unit = {
    if (value && _isTest) Config.log.warn("both a test and features are asked for: features are extracted")
    if (value) _isTest = false
    _isFeature = value
  }

  /** The blob that goes with the features; "" for none. */
  def label: String = _label

  def label_=(value: String): Unit = {
    _label = value
    features = _features
  }

  /** The blobs to extract, with `label` among them; null for none. */
  def features: Array[String] = _features

  def features_=(value: Array[String]): Unit = {
    val lacksLabel = value != null && !value.isEmpty && _label != null && !_label.isEmpty &&
      !value.contains(_label)
    _features = if (lacksLabel) value :+ _label else value
  }

  /** The place in the net of the layer that feeds the training, -1 if there is none. */
  def train_data_layer_id: Int = if (prototxt == null) -1 else prototxt.dataLayer(Phase.TRAIN)

  /** The place in the net of the layer that feeds tests, -1 if there is none. */
  def test_data_layer_id: Int = if (prototxt == null) -1 else prototxt.dataLayer(Phase.TEST)

  /** The solver; null before `protoFile` is set. */
  def solverParameter: SolverParameter = if (prototxt == null) null else prototxt.solver

  /** The net; null before `protoFile` is set. */
  def netParam: NetParameter = if (prototxt == null) null else prototxt.net

  /** A line for each property. */
  override def toString: String = {
    val shown = if (features == null) Nil else Seq("features" -> features.mkString(","))
    val all = Seq(
      "protoFile" -> protoFile, "train" -> isTraining, "test" -> isTest) ++ shown ++ Seq(
      "label" -> label, "outputFormat" -> outputFormat, "model" -> modelPath, "output" -> outputPath,
      "devices" -> devices, "persistent" -> isRddPersistent, "snapshot" -> snapshotStateFile,
      "weights" -> snapshotModelFile, "resize" -> resize, "connection" -> connection,
      "clusterSize" -> clusterSize, "lmdb_partitions" -> lmdb_partitions,
      "train_data_layer_id" -> train_data_layer_id, "test_data_layer_id" -> test_data_layer_id,
      "transform_thread_per_device" -> transform_thread_per_device, "imageRoot" -> imageRoot,
      "labelFile" -> labelFile, "captionFile" -> captionFile, "captionLength" -> captionLength,
      "vocabSize" -> vocabSize, "imageCaptionDFDir" -> imageCaptionDFDir, "vocabDir" -> vocabDir,
      "embeddingDFDir" -> embeddingDFDir)
    all.map { case (name, value) => s"$name:$value\n" }.mkString
  }

  /** The command line of `cafetiere.spark.Submit` that asks for the same. */
  private[caffe] def flags(task: String*): Array[String] = {
    if (devices < 0) throw new IllegalArgumentException(s"conf.devices is $devices: it must be at least 1")
    def text(flag: String, value: String) =
      if (value == null || value.isEmpty) Nil else Seq(s"-$flag", value)
    def counted(flag: String, value: Int) = if (value > 0) Seq(s"-$flag", value.toString) else Nil
    val words = Map(Config.Rdma -> "infiniband", Config.Socket -> "ethernet")
    val all = task ++ text("conf", protoFile) ++ text("model", modelPath) ++
      text("snapshot", snapshotStateFile) ++ text("weights", snapshotModelFile) ++
      text("connection", words.getOrElse(connection, "")) ++ counted("clusterSize", clusterSize) ++
      counted("devices", devices) ++
      (if (transform_thread_per_device > 1) counted("prefetchThreads", transform_thread_per_device) else Nil) ++
      (if (resize) Seq("-resize") else Nil) ++
      (if (isRddPersistent) Seq("-persistent") else Nil) ++ more
    all.toArray
  }
}

private[caffe] object Config {
  val None = 0
  val Rdma = 1
  val Socket = 2
  private val log = LoggerFactory.getLogger(classOf[Config])
}
