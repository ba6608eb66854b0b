// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Elastic averaging on MNIST as text: `AsyncEASGDMnistLocalTest SOLVER NET PARAM [TRAIN [TEST]]`. The net gets
  * pixels from 0 to 1. The weights are in final_weight.bin at the end.
  */
object AsyncEASGDMnistLocalTest {
  def main(args: Array[String]): Unit = Program.run("AsyncEASGDMnistLocalTest", args, "PARAM") { program =>
    val train = Program.scaled(program.images("text", 0, "/data/MNIST/mnist_train.txt"))
    val test = Program.scaled(program.images("text", 1, "/data/MNIST/mnist_test.txt"))
    val model = program.easgd(train, adaptive = false)
    program.saveWeight(model, train, "final_weight.bin")
    program.tellAccuracy(model, test)
  }
}
