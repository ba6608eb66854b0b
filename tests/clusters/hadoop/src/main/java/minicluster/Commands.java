// SPDX-License-Identifier: Apache-2.0
package minicluster;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;

/**
 * What a test can ask for, a line each, words parted by tabs. The answer is a line: "ok" and what was
 * asked for, or "failed" and why.
 */
final class Commands {
  static final String LABEL = "gpu";
  private static final String GPU = "yarn.io/gpu";

  private final FileSystem hdfs;
  private final ResourceManager manager;

  Commands(FileSystem hdfs, ResourceManager manager) {
    this.hdfs = hdfs;
    this.manager = manager;
  }

  String answer(String line) {
    try {
      List<String> words = new ArrayList<>(List.of("ok"));
      words.addAll(run(line.split("\t")));
      return String.join("\t", words);
    } catch (Exception e) {
      return "failed\t" + e.toString().replaceAll("\\s+", " ");
    }
  }

  private List<String> run(String[] words) throws IOException {
    switch (words[0]) {
      case "put" -> hdfs.copyFromLocalFile(new Path(words[1]), new Path(words[2]));
      case "get" -> hdfs.copyToLocalFile(false, new Path(words[1]), new Path(words[2]), true);
      case "list" -> {
        return list(new Path(words[1]));
      }
      case "containers" -> {
        return containers();
      }
      case "label" -> label();
      default -> throw new IllegalArgumentException("no command " + words[0]);
    }
    return List.of();
  }

  /** The paths and sizes of all files below a folder, or none where that is missing. */
  private List<String> list(Path folder) throws IOException {
    List<String> found = new ArrayList<>();
    if (!hdfs.exists(folder)) return found;
    RemoteIterator<LocatedFileStatus> files = hdfs.listFiles(folder, true);
    while (files.hasNext()) {
      LocatedFileStatus file = files.next();
      found.add(file.getPath().toUri().getPath() + " " + file.getLen());
    }
    return found;
  }

  /** Of each container that runs: application, number, port of its NodeManager, GPUs. */
  private List<String> containers() {
    List<String> found = new ArrayList<>();
    AbstractYarnScheduler<?, ?> scheduler = (AbstractYarnScheduler<?, ?>) manager.getResourceScheduler();
    for (var id : manager.getRMContext().getRMApps().keySet()) {
      var running = scheduler.getSchedulerApplications().get(id);
      if (running == null) continue;
      SchedulerApplicationAttempt attempt = running.getCurrentAppAttempt();
      for (RMContainer container : attempt.getLiveContainers()) {
        found.add(id + " " + container.getContainerId().getContainerId() + " "
            + container.getAllocatedNode().getPort() + " "
            + container.getAllocatedResource().getResourceValue(GPU));
      }
    }
    return found;
  }

  /** Puts the label on one of the nodes, which from then on is for those who ask for it. */
  private void label() throws IOException {
    RMNodeLabelsManager labels = manager.getRMContext().getNodeLabelManager();
    labels.addToCluserNodeLabelsWithDefaultExclusivity(Set.of(LABEL));
    AbstractYarnScheduler<?, ?> scheduler = (AbstractYarnScheduler<?, ?>) manager.getResourceScheduler();
    NodeId first = manager.getRMContext().getRMNodes().keySet().stream().sorted().findFirst().orElseThrow();
    SchedulerNode node = scheduler.getSchedulerNode(first);
    labels.replaceLabelsOnNode(Map.of(node.getNodeID(), Set.of(LABEL)));
  }
}
