// SPDX-License-Identifier: Apache-2.0
package apps

import caffe.Caffe.SolverParameter
import libs._
import loaders.MnistLoader

/** Trains LeNet on MNIST: `MnistApp [--master=URL] WORKERS [ROUNDS]`, 30 passes over the images where no
  * rounds are given. In SPARKNET_HOME lies data/mnist, with MNIST's files. Weights are averaged every 10
  * iterations and tested every 5 rounds; at the end they are in lenet.caffemodel there.
  */
object MnistApp {
  val trainBatchSize = 64
  val testBatchSize = 64

  def main(args: Array[String]): Unit = Averaging.run("Mnist", args) { (spark, home, own, logger) =>
    val workers = own.head.toInt
    logger.log("loading data")
    val loader = new MnistLoader(s"$home/data/mnist")
    val epoch = math.max(1, loader.trainImages.length / (trainBatchSize * workers))
    val solver = SolverParameter.newBuilder.setBaseLr(0.01f).setMomentum(0.9f)
      .setLrPolicy("step").setStepsize(epoch).setGamma(0.95f).setMaxIter(30 * epoch).build
    val model = new Averaging(workers, syncInterval = 10, testInterval = 5, logger).train(
      solver,
      net,
      CifarApp.rows(spark, loader.trainImages, loader.trainLabels.map(_.toInt)).repartition(workers),
      CifarApp.rows(spark, loader.testImages, loader.testLabels.map(_.toInt)).repartition(workers),
      own.drop(1).headOption.fold(0)(_.toInt))
    Averaging.save(model, s"$home/lenet.caffemodel", logger)
  }

  private def net = {
    import cafetiere.dsl.{Accuracy, Convolution, Filler, InnerProduct, NetStateRule, Phase}
    val xavier = Filler("xavier")
    Averaging.onRows(
      NetParam("LeNet",
        Convolution("conv1", Seq("data"), numOutput = 20, kernelSize = Seq(5), weightFiller = xavier),
        PoolingLayer("pool1", List("conv1"), pooling = Pooling.Max, kernel = (2, 2), stride = (2, 2)),
        Convolution("conv2", Seq("pool1"), numOutput = 50, kernelSize = Seq(5), weightFiller = xavier),
        PoolingLayer("pool2", List("conv2"), pooling = Pooling.Max, kernel = (2, 2), stride = (2, 2)),
        InnerProduct("ip1", Seq("pool2"), numOutput = 500, weightFiller = xavier),
        ReLULayer("relu1", List("ip1")),
        InnerProduct("ip2", Seq("relu1"), numOutput = 10, weightFiller = xavier),
        Accuracy("accuracy", Seq("ip2", "label"), include = Seq(NetStateRule(phase = Phase.Test))),
        SoftmaxWithLoss("loss", List("ip2", "label"))),
      trainBatchSize, 1, 28, 28)
  }
}
